// The exact core on host arithmetic: float32, float64 or pieces, as the values present allow.
#include "emu/unit/exact.hpp"

#include <type_traits>

#include "emu/unit/chain.hpp"
#include "emu/unit/exact_plan.hpp"
#include "emu/unit/exact_split.hpp"
#include "emu/unit/integer/integer.hpp"
#include "emu/unit/operand.hpp"

namespace numemu::unit {
namespace {

/// The chain of decoded operands from C.
template <class T>
void multiply_as(const Gemm& g, const Source<T>& a, const Source<T>& b) {
  Chain<T, float> chain{g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const float*>(g.c);
  chain.d = static_cast<float*>(g.d);
  run_chain(chain);
}

Exponents present_in_c(const Gemm& g) {
  Exponents range;
  if (g.c == nullptr) return range;
  const auto* c = static_cast<const float*>(g.c);
  for (std::int64_t i = 0; i < g.m * g.n; ++i) range.include(value_of(c[i]));
  return range;
}

/// The plan proved that T holds every value present; values of the format it does not hold are not
/// read.
template <class T>
Source<T> decode_as(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  if constexpr (std::is_same_v<T, float>) {
    if (fits_float32(*operand.format)) return decode_floats(operand, rows, depth);
  }
  return decode_source<T>(operand, rows, depth,
                          [](const Value& v) { return static_cast<T>(double_or_nan(v)); });
}

bool covered(const UnitDescription& u) {
  const auto float32 = [](const Format* f) { return f != nullptr && f->name == "float32"; };
  const Register& r = u.accumulator;
  return u.core == CoreKind::exact && u.k == 0 && u.group == 0 && float32(r.format) &&
         float32(u.c) && float32(u.d) && r.rounding == Rounding{} && r.overflow == Overflow::ieee &&
         u.scaling.point == Scaling::Point::none && u.nan == NanRule::canonical &&
         u.nan_code == 0x7fc00000 && !u.subnormals.flush_inputs && !u.subnormals.flush_c &&
         !u.subnormals.flush_results;
}

}  // namespace

bool multiply_exact(const UnitDescription& u, const Gemm& g) {
  if (!covered(u)) return false;
  if (multiply_exact_digits(g)) return true;
  const Present a = scan(g.a, g.m, g.k), b = scan(g.b, g.n, g.k);
  const ExactPlan plan = plan_exact(a.exponents, b.exponents, present_in_c(g), g.k);
  switch (plan.way) {
    case ExactPlan::Way::float32:
      multiply_as(g, decode_as<float>(g.a, g.m, g.k), decode_as<float>(g.b, g.n, g.k));
      return true;
    case ExactPlan::Way::float64:
      multiply_as(g, decode_as<double>(g.a, g.m, g.k), decode_as<double>(g.b, g.n, g.k));
      return true;
    case ExactPlan::Way::split:
      multiply_split(g, plan, a.specials || b.specials);
      return true;
    case ExactPlan::Way::kulisch:
      break;
  }
  return false;
}

}  // namespace numemu::unit
