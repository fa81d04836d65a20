#include "emu/unit/reference/divergence.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <utility>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::unit {
namespace {

DivergentSide run(const UnitDescription& u, const Gemm& g, std::int64_t i, std::int64_t j,
                  std::int64_t number) {
  DivergentSide side;
  std::uint64_t code = ReferenceDot(u, g).outcome(i, j, i * g.n + j, number, &side.trace).code;
  side.sums = running_sums(u, side.trace);
  side.end = side.trace.steps.size();
  const Format* d = result_format(u);
  if (d != nullptr) code <<= d->container_shift;
  side.result = side.held = read_element(d, result_register(u), &code, 0);
  return side;
}

/// Whether the first p products of two orders are the same ones, p growing.
class SameProducts {
 public:
  SameProducts(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b)
      : a_(a), b_(b) {}
  bool operator()(std::int64_t products) {
    for (; taken_ < static_cast<std::size_t>(products); ++taken_) {
      count(a_[taken_], 1);
      count(b_[taken_], -1);
    }
    return surplus_.empty();
  }

 private:
  void count(std::int64_t k, int by) {
    const auto at = surplus_.try_emplace(k, 0).first;
    if ((at->second += by) == 0) surplus_.erase(at);
  }
  const std::vector<std::int64_t>&a_, &b_;
  std::size_t taken_ = 0;
  std::map<std::int64_t, int> surplus_;
};

std::string number_text(const Value& v) {
  return fmt::format("{} ({})", hex_text(v), decimal_text(v));
}

void end_at(DivergentSide& side, const RunningSum& sum) {
  side.end = sum.step + 1;
  side.end_term.reset();
  if (sum.term) side.end_term = *sum.term + 1;
}

/// A chain goes on inside its step, from the term that both agree in.
void begin_after(DivergentSide& side, const RunningSum& sum) {
  side.begin = sum.term ? sum.step : sum.step + 1;
  side.begin_term = sum.term.value_or(0);
}

std::string place(const DivergentSide& side) {
  if (side.end == 0) return "the result";
  const TraceStep& step = side.trace.steps[side.end - 1];
  if (!side.end_term) return step.what;
  const TraceTerm& term = step.terms[*side.end_term - 1];
  return fmt::format("{} of {}", term.k >= 0 ? fmt::format("k {}", term.k) : term.what, step.what);
}

}  // namespace

bool same_number(const Value& x, const Value& y) {
  if (x.kind != y.kind) return false;
  if (x.kind == Class::nan || x.kind == Class::zero) return true;
  if (x.negative != y.negative) return false;
  if (x.kind == Class::infinite) return true;
  const int low_x = std::countr_zero(x.significand), low_y = std::countr_zero(y.significand);
  return x.exponent + low_x == y.exponent + low_y &&
         x.significand >> low_x == y.significand >> low_y;
}

Divergence find_divergence(const UnitDescription& first, const UnitDescription& second,
                           const Gemm& g, std::int64_t i, std::int64_t j,
                           std::optional<std::int64_t> number) {
  const std::int64_t drawn = number.value_or(i * g.n + j);
  Divergence d{.first = run(first, g, i, j, drawn), .second = run(second, g, i, j, drawn)};
  SameProducts same(d.first.sums.order, d.second.sums.order);
  // Without C, sums with and without it are the same.
  const auto key = [&](const RunningSum& s) {
    return std::pair(s.products, g.c == nullptr || s.with_c);
  };
  std::map<std::pair<std::int64_t, bool>, const RunningSum*> others;
  for (const RunningSum& s : d.second.sums.sums) others.try_emplace(key(s), &s);
  for (const RunningSum& s : d.first.sums.sums) {
    const auto other = others.find(key(s));
    if (other == others.end() || !same(s.products)) continue;
    const RunningSum& t = *other->second;
    d.products = s.products;
    d.with_c = s.with_c;
    end_at(d.first, s);
    end_at(d.second, t);
    if (!same_number(s.held, t.held)) {
      d.first.held = s.held;
      d.second.held = t.held;
      d.differs = d.in_sum = true;
      return d;
    }
    d.agreed = s.products;
    begin_after(d.first, s);
    begin_after(d.second, t);
  }
  for (DivergentSide* side : {&d.first, &d.second}) {
    side->end = side->trace.steps.size();
    side->end_term.reset();
  }
  d.differs =
      !same_number(d.first.result, d.second.result) ||
      (d.first.result.kind == Class::zero && d.first.result.negative != d.second.result.negative);
  d.products = static_cast<std::int64_t>(d.first.sums.order.size());
  return d;
}

std::string divergence_line(const Divergence& d) {
  if (!d.differs) return "no difference";
  const std::string first = number_text(d.first.held), second = number_text(d.second.held);
  if (!d.in_sum) return fmt::format("the result: {} against {}", first, second);
  const std::string here = place(d.first), there = place(d.second);
  return fmt::format("{}: {} against {}{}", here, first, second,
                     here == there ? "" : " in " + there);
}

}  // namespace numemu::unit
