// Chains: one multiply-add after another, each rounded; several chains, chunks, Kahan's correction.
#include <algorithm>

#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/step.hpp"

namespace numemu::unit {
namespace {

class ReferenceChain {
 public:
  explicit ReferenceChain(const Machine& machine) : m_(machine), unit_(machine.unit) {}

  /// The register after multiply-adds from `start`, which the trace calls `start_name`.
  Value run(std::span<const Factors> products, Value start, const std::string& what,
            const std::string& start_name) {
    if (m_.trace != nullptr) {
      trace_ = &add_step(m_, what + ", " + products_name(products));
      trace_->terms.push_back(start_term(m_, start_name, start));
      trace_->terms.back().after = trace_->terms.back().kept;
    }
    Value sum = start, error;
    for (const Factors& f : products) sum = unit_.chain.kahan ? kahan(sum, f, error) : add(sum, f);
    if (trace_ != nullptr) end_step(m_, sum);
    return sum;
  }

 private:
  std::uint32_t random(const Factors& f) const {
    const Rounding& rounding = unit_.accumulator.rounding;
    return rounding.stochastic() ? m_.draw.at(f.k, rounding.random_bits) : 0;
  }

  Value rounded_product(const Factors& f) const {
    m_.sum.clear();
    m_.sum.add_product(f.a, f.b);
    return round_sum(m_, {&f.a, &f.b}, random(f));
  }

  Value add(const Value& sum, const Factors& f) {
    Value result;
    if (unit_.chain.fused) {
      m_.sum.clear();
      m_.sum.add_product(f.a, f.b);
      m_.sum.add(sum);
      result = round_sum(m_, {&f.a, &f.b, &sum}, random(f));
      if (trace_ != nullptr) note(f, exact_product(f.a, f.b), result);
    } else {
      const Value product = rounded_product(f);
      result = add_rounded(m_, product, sum, random(f));
      note(f, held_in_register(m_, product), result);
    }
    return result;
  }

  Value kahan(const Value& sum, const Factors& f, Value& error) {
    Value correction = error;
    correction.negative = !correction.negative;
    m_.sum.clear();
    m_.sum.add_product(f.a, f.b);
    m_.sum.add(correction);
    Value y = round_sum(m_, {&f.a, &f.b, &correction}, random(f));
    const Value result = add_rounded(m_, sum, y, random(f));
    Value old = sum;
    old.negative = !old.negative;
    const Value added = add_rounded(m_, result, old, random(f));
    note(f, held_in_register(m_, y), result);
    y.negative = !y.negative;
    error = add_rounded(m_, added, y, random(f));
    if (trace_ != nullptr) trace_->terms.back().error = held_in_register(m_, error);
    return result;
  }

  void note(const Factors& f, const Value& added, const Value& result) {
    if (trace_ == nullptr) return;
    trace_->terms.push_back(product_term(m_, f, exact_product(f.a, f.b), added));
    trace_->terms.back().after = held_in_register(m_, result);
  }

  const Machine& m_;
  const UnitDescription& unit_;
  TraceStep* trace_ = nullptr;
};

/// A sum as the trace calls it.
struct NamedSum {
  std::string name;
  const Value& value;
};

/// Notes the addition just done, whose exact sum is in `m.sum`.
void note_addition(const Machine& m, const NamedSum& a, const NamedSum& b, const Value& result) {
  TraceStep& step = add_step(m, "addition of " + b.name);
  step.terms.push_back(start_term(m, a.name, a.value));
  step.terms.push_back(start_term(m, b.name, b.value));
  step.sum = exact_sum(m, m.unit.accumulator.rounding);
  end_step(m, result);
}

/// Chunks start from +0; their sums are chained from C.
Value run_chunks(const Machine& m, std::span<const Factors> products, Value sum) {
  const auto size = static_cast<std::size_t>(m.unit.chain.chunk);
  const Rounding& rounding = m.unit.accumulator.rounding;
  std::int64_t index = 0;
  for (std::size_t first = 0; first < products.size(); first += size, ++index) {
    const auto chunk = products.subspan(first, std::min(size, products.size() - first));
    const std::string name = "chunk " + std::to_string(index);
    const Value before = sum, part = ReferenceChain(m).run(chunk, Value{}, name, "start");
    const std::uint32_t random =
        rounding.stochastic() ? m.draw.at(m.depth + index, rounding.random_bits) : 0;
    sum = add_rounded(m, sum, part, random);
    if (m.trace != nullptr)
      note_addition(m, {index == 0 ? m.c_name : "register", before}, {name, part}, sum);
  }
  return sum;
}

/// Chains from +0 over k mod n, then neighbours added until one is left.
Value run_interleaved(const Machine& m, std::span<const Factors> products) {
  const auto count = static_cast<std::size_t>(m.unit.chain.chains);
  std::vector<Value> sums;
  const auto name = [](std::size_t c) { return "chain " + std::to_string(c); };
  for (std::size_t c = 0; c < count; ++c) {
    std::vector<Factors> own;
    for (std::size_t i = c; i < products.size(); i += count) own.push_back(products[i]);
    sums.push_back(ReferenceChain(m).run(own, Value{}, name(c), "start"));
  }
  for (std::size_t width = 1; width < count; width *= 2) {
    for (std::size_t c = 0; c + width < count; c += 2 * width) {
      const Value before = sums[c];
      sums[c] = add_rounded(m, before, sums[c + width]);
      if (m.trace != nullptr)
        note_addition(m, {name(c), before}, {name(c + width), sums[c + width]}, sums[c]);
    }
  }
  return sums[0];
}

}  // namespace

Value run_chain(const Machine& m, std::span<const Factors> products, const Value& c) {
  const bool later = m.unit.c_entry == CEntry::after_rounding;
  const Value start = later ? Value{} : c;
  if (m.unit.chain.chunk != 0) return run_chunks(m, products, start);
  const Value sum = m.unit.chain.chains > 1
                        ? run_interleaved(m, products)
                        : ReferenceChain(m).run(products, start, "chain", start_name(m, true));
  return later ? add_c(m, c, sum) : sum;
}

}  // namespace numemu::unit
