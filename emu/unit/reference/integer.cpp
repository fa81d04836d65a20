// Integer registers: exact products, signs compared, or products looked up; wrapping or saturating.
#include <algorithm>

#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/step.hpp"

namespace numemu::unit {
namespace {

std::int64_t whole_number(const Value& v) {
  if (v.kind != Class::finite) return 0;
  const auto magnitude = static_cast<std::int64_t>(v.significand) << v.exponent;
  return v.negative ? -magnitude : magnitude;
}

std::int64_t product_of(const UnitDescription& unit, const Format& b, const Factors& f) {
  switch (unit.core) {
    case CoreKind::xnor:
      return f.code_a == f.code_b ? 1 : -1;
    case CoreKind::table:
      return (*unit.products)[f.code_a << b.bits | f.code_b];
    default:
      return whole_number(f.a) * whole_number(f.b);
  }
}

Value value_of_whole(std::int64_t n) {
  if (n == 0) return {};
  return {Class::finite, n < 0, false, 0,
          n < 0 ? ~static_cast<std::uint64_t>(n) + 1 : static_cast<std::uint64_t>(n)};
}

/// What the register holds of a sum of whole numbers.
std::int64_t held(const Machine& m, std::int64_t sum) {
  const Register& r = m.unit.accumulator;
  return whole_number(within(r, m.ends, round_to(r, value_of_whole(sum), 0, &m.flags)));
}

}  // namespace

Value integer_product(const UnitDescription& unit, const Format& b, const Factors& f) {
  return value_of_whole(product_of(unit, b, f));
}

Value run_integer(const Machine& m, std::span<const Factors> products, const Value& c) {
  const bool each = m.unit.accumulator.integer == IntegerOverflow::saturate_each;
  const auto size =
      static_cast<std::size_t>(step_size(m.unit, static_cast<std::int64_t>(products.size())));
  std::int64_t sum = whole_number(c);
  for (std::size_t first = 0; first < products.size(); first += size) {
    const auto step = products.subspan(first, std::min(size, products.size() - first));
    TraceStep* const trace = m.trace == nullptr ? nullptr : &add_step(m, step_name(*m.trace, step));
    if (trace != nullptr)
      trace->terms.push_back(start_term(m, start_name(m, first == 0), value_of_whole(sum)));
    for (const Factors& f : step) {
      const std::int64_t product = product_of(m.unit, *m.b, f);
      sum = each ? held(m, sum + product) : sum + product;
      if (trace == nullptr) continue;
      trace->terms.push_back(product_term(m, f, value_of_whole(product), value_of_whole(product)));
      if (each) trace->terms.back().after = value_of_whole(sum);
    }
    if (trace != nullptr && !each) trace->sum = value_of_whole(sum);
    sum = held(m, sum);
    if (trace != nullptr) end_step(m, value_of_whole(sum));
  }
  return value_of_whole(held(m, sum));
}

}  // namespace numemu::unit
