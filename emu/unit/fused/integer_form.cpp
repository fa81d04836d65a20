// Decides whether the 32-bit integer form is exact for a product, and runs it.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/fused/integer_form.hpp"

#include "emu/unit/fused/integer_form_tile.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/fused/prepare_tile.hpp"

namespace numemu::unit {
namespace {

/// In units of 2^(E - F) a product is below 4 * 2^F and C below 2 * 2^F. Their sum must leave room
/// for half a float16 ulp of its 31 bits, 2^19, when that is rounded up.
bool sums_fit_integers(const FusedRule& rule) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - (std::int64_t{1} << 19);
  return rule.fraction_bits >= 2 && rule.fraction_bits <= 28 &&
         (4 * std::int64_t{rule.group} + 2) << rule.fraction_bits <= kLimit;
}

/// Products are float32 numbers: they have as many bits, and neither the first nor the last one is
/// out of range. The scales 2^(F - E) and 2^(E - F) are normal float32 numbers then: the largest
/// exponent E is at least lowest + F and at most 128.
bool products_fit(const FusedOperands& o, const FusedSteps& steps) {
  const int bits = o.a.mantissa_bits + 1 + o.b.mantissa_bits + 1;
  return bits <= 24 && steps.lowest >= -126 && o.highest_product + 2 <= 128;
}

/// The rounding to float16 shifts by less than 32 bits.
bool half_fits(const FusedSteps& steps) { return !steps.rule.half || steps.lowest >= -54; }

}  // namespace

bool multiply_fused_integer(const UnitDescription& unit, const Gemm& gemm) {
  const auto rule = fused_rule(unit);
  if (!rule || !rule->usual_register() || rule->c_at_end || rule->scaled ||
      !sums_fit_integers(*rule) || !has_integer_form())
    return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands) return false;
  const FusedSteps steps = fused_steps(unit, *operands);
  const bool in_range = rule->half || operands->bounded;
  if (!in_range || !products_fit(*operands, steps) || !half_fits(steps)) return false;
  run_fused_tiles(gemm, *operands, steps, run_integer_tile);
  finish_fused(unit, gemm, *operands);
  return true;
}

}  // namespace numemu::unit
