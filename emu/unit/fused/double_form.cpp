// Decides whether the float64 form is exact for a product, and runs it.
#include "emu/unit/fused/double_form.hpp"

#include "emu/unit/fused/double_form_tile.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/fused/prepare_tile.hpp"

namespace numemu::unit {
namespace {

/// The sums of a step's positive and negative addends, each below (4 G + 2) 2^E, must stay below
/// M = 2^(E + 52 - F), so that the accumulators keep the ulp 2^(E - F) from M to 2 M.
bool sums_fit(const FusedRule& rule) {
  constexpr int kFractionBits = 52;
  return rule.fraction_bits < kFractionBits &&
         4 * std::int64_t{rule.group} + 2 <= std::int64_t{1}
                                                 << (kFractionBits - rule.fraction_bits);
}

}  // namespace

bool multiply_fused_double(const UnitDescription& unit, const Gemm& gemm) {
  // RoundToHalf()'s; a float16 C is a multiple of 2^-24.
  constexpr int kLowestForHalf = -66;
  const auto rule = fused_rule(unit);
  if (!rule || !sums_fit(*rule) || !has_double_form()) return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands) return false;
  const FusedSteps steps = fused_steps(unit, *operands);
  if (rule->half && steps.lowest < kLowestForHalf) return false;
  run_fused_tiles(gemm, *operands, steps, run_double_tile);
  finish_fused(unit, gemm, *operands);
  return true;
}

}  // namespace numemu::unit
