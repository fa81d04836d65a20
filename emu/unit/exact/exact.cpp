// The exact core on host arithmetic: float32, float64 or pieces, as the values present allow.
#include "emu/unit/exact/exact.hpp"

#include <type_traits>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/exact/exact_plan.hpp"
#include "emu/unit/exact/exact_split.hpp"
#include "emu/unit/integer/integer.hpp"
#include "emu/unit/operand.hpp"

namespace numemu::unit {
namespace {

/// The chain of decoded operands from C. The plan proved that T holds every value present.
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

bool covered(const UnitDescription& u) {
  const auto float32 = [](const Format* f) { return f != nullptr && f->name == "float32"; };
  return u.core == CoreKind::exact && float32(u.accumulator.format) && float32(c_format(u)) &&
         float32(result_format(u));
}

}  // namespace

bool multiply_exact(const UnitDescription& u, const Gemm& g) {
  if (!covered(u)) return false;
  if (multiply_exact_digits(g)) return true;
  const Present a = scan(g.a, g.m, g.k), b = scan(g.b, g.n, g.k);
  const ExactPlan plan = plan_exact(a.exponents, b.exponents, present_in_c(g), g.k);
  switch (plan.way) {
    case ExactPlan::Way::float32:
      multiply_as(g, decode_numbers<float>(g.a, g.m, g.k), decode_numbers<float>(g.b, g.n, g.k));
      return true;
    case ExactPlan::Way::float64:
      multiply_as(g, decode_numbers<double>(g.a, g.m, g.k), decode_numbers<double>(g.b, g.n, g.k));
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
