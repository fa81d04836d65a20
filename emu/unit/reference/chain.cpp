// Chains: one multiply-add after another, each rounded; several chains, chunks, Kahan's correction.
#include <algorithm>

#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/step.hpp"

namespace numemu::unit {
namespace {

class Chain {
 public:
  explicit Chain(const Machine& machine) : m_(machine), unit_(machine.unit) {
    if (m_.trace != nullptr) trace_ = &m_.trace->steps.emplace_back();
  }

  /// The register after multiply-adds from `start`.
  Value run(std::span<const Factors> products, Value start, const std::string& what) {
    if (trace_ != nullptr) {
      trace_->what = what;
      trace_->terms.push_back({-1, 0, 0, start, 0, start, "start"});
    }
    Value sum = start, error;
    for (const Factors& f : products) sum = unit_.chain.kahan ? kahan(sum, f, error) : add(sum, f);
    if (trace_ != nullptr)
      trace_->result = code_of(unit_.accumulator.format, unit_.accumulator, sum, unit_.nan_code);
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
    } else {
      result = add_rounded(m_, rounded_product(f), sum, random(f));
    }
    note(f, result);
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
    y.negative = !y.negative;
    error = add_rounded(m_, added, y, random(f));
    note(f, result);
    return result;
  }

  void note(const Factors& f, const Value& result) {
    if (trace_ == nullptr) return;
    trace_->terms.push_back(
        {f.k, f.code_a, f.code_b, exact_product(f.a, f.b), 0, result, "multiply-add, then"});
  }

  const Machine& m_;
  const UnitDescription& unit_;
  TraceStep* trace_ = nullptr;
};

/// Chunks start from +0; their sums are chained from C.
Value run_chunks(const Machine& m, std::span<const Factors> products, Value sum) {
  const auto size = static_cast<std::size_t>(m.unit.chain.chunk);
  const Rounding& rounding = m.unit.accumulator.rounding;
  std::int64_t index = 0;
  for (std::size_t first = 0; first < products.size(); first += size, ++index) {
    const auto chunk = products.subspan(first, std::min(size, products.size() - first));
    const Value part = Chain(m).run(chunk, Value{}, "chunk " + std::to_string(index));
    const std::uint32_t random =
        rounding.stochastic() ? m.draw.at(m.depth + index, rounding.random_bits) : 0;
    sum = add_rounded(m, sum, part, random);
    if (m.trace != nullptr) {
      TraceStep& step = m.trace->steps.emplace_back();
      step.what = "sum of chunk " + std::to_string(index);
      step.terms.push_back({-1, 0, 0, part, 0, part, "chunk"});
      step.result = code_of(m.unit.accumulator.format, m.unit.accumulator, sum, m.unit.nan_code);
    }
  }
  return sum;
}

/// Chains from +0 over k mod n, then neighbours added until one is left.
Value run_interleaved(const Machine& m, std::span<const Factors> products) {
  const auto count = static_cast<std::size_t>(m.unit.chain.chains);
  std::vector<Value> sums;
  for (std::size_t c = 0; c < count; ++c) {
    std::vector<Factors> own;
    for (std::size_t i = c; i < products.size(); i += count) own.push_back(products[i]);
    const std::string what = "chain " + std::to_string(c) + ", k mod " + std::to_string(count) +
                             " = " + std::to_string(c);
    sums.push_back(Chain(m).run(own, Value{}, what));
  }
  for (std::size_t width = 1; width < count; width *= 2) {
    for (std::size_t c = 0; c + width < count; c += 2 * width)
      sums[c] = add_rounded(m, sums[c], sums[c + width]);
  }
  return sums[0];
}

}  // namespace

Value run_chain(const Machine& m, std::span<const Factors> products, const Value& c) {
  const std::vector<Factors> ordered = in_step_order(m.unit, products);
  const bool later = m.unit.c_entry == CEntry::after_rounding;
  const Value start = later ? Value{} : c;
  if (m.unit.chain.chunk != 0) return run_chunks(m, ordered, start);
  const Value sum =
      m.unit.chain.chains > 1 ? run_interleaved(m, ordered) : Chain(m).run(ordered, start, "chain");
  return later ? add_c(m, c, sum) : sum;
}

}  // namespace numemu::unit
