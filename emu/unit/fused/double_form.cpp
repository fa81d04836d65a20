// The products that the float64 form supports, the proof of exactness, and the run.
//
// A step aligns to 2^E and cuts each addend's magnitude to a multiple of u = 2^(E - F), for any
// F >= 0. With M = 2^(E + 52 - F), float64 numbers in [M, 2 M) are the multiples of u: under
// rounding toward zero one fused multiply-add cuts a product there and adds it exactly, as long as
// the sum stays below 2 M. Negative products go to a second sum from -M on; the two meet exactly.
//   Below 2 M: a product is below 4 * 2^E (two significands below 2), C below 2 * 2^E, so a sum
//   grows by less than (4 G + 2) 2^E <= M where 4 G + 2 <= 2^(52 - F). sums_fit_doubles() checks it
//   for any number G of products of a step, and nothing else bounds G. The order of steps only says
//   which products a step reads, and those of pairs (k mod 4, odd first) are whole runs of two
//   where G is even. C is the first addend, or is added after the last step: by the host's addition
//   to float32, or, for other registers, as AddToRegister() proves. The register: the sum S is
//   exact, so any rounding of it is right that is computed from its bits. Its normal numbers have 1
//   to 23 fraction bits and exponents of float32. For |S| >= 2^smallest they are the high bits of
//   S. Below, |S| + 2^smallest, cut to 53 bits, has the register's subnormal unit where normal
//   numbers have their last bit; whether the cut lost anything joins the last of these bits, which
//   lies below half of that unit, so that both roundings see all of S. Rounded values are float32
//   numbers, and storing them rounds nothing.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/fused/double_form.hpp"

#include "emu/unit/fused/double_form_tile.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/fused/prepare_tile.hpp"

namespace numemu::unit {
namespace {

/// The sums of a step's positive and negative addends, each below (4 G + 2) 2^E, must stay below
/// M = 2^(E + 52 - F), so that the accumulators keep the ulp 2^(E - F) from M to 2 M.
bool sums_fit_doubles(const FusedRule& rule) {
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
  if (!rule || !sums_fit_doubles(*rule) || !has_double_form()) return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands) return false;
  const FusedSteps steps = fused_steps(unit, *operands);
  if (rule->half && steps.lowest < kLowestForHalf) return false;
  run_fused_tiles(gemm, *operands, steps, run_double_tile);
  finish_fused(unit, gemm, *operands);
  return true;
}

}  // namespace numemu::unit
