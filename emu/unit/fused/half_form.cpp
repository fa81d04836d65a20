// The products that the half form supports, and the proof of exactness.
//
// With em the largest exponent of a product, q = 13 - em and products of at most 11 bits:
//   p = (a 2^x) (b 2^y), x + y = q, is exact in float16: below 4 * 2^(em + q) = 2^15, a multiple of
//   2^-24, the smallest subnormal number, where every product is one of 2^(-24 - q).
//   u = p s, s = 2^(F - E - q), is the product in units of the cut, below 4 * 2^F <= 2^15. It is
//   exact from 2^-14 on, and what is smaller stays below 1: truncation to int16 is the unit's cut.
//   s <= 2^15 where E >= F - 15 - q. Steps with a smaller E anywhere in 64 lanes multiply by two
//   such scales and shift the sum by what is still missing; nothing is cut then, p 2^30 is whole.
//   s < 2^-14 is replaced by 0: then E >= em + F + 2, every product is below 2^(em + 2) <=
//   2^(E - F) and is cut to 0.
//   Sums stay below (4 G + 2) 2^F <= 2^23 (float_form.cpp): int32 and float32 hold them.
//   2^(F - E) and 2^(E - F) are normal float32 numbers where -107 <= E <= 113. A step without
//   products takes part with -107; every C other than 0 is at least 2^-100.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/fused/half_form.hpp"

#include "emu/unit/fused/float_form.hpp"
#include "emu/unit/fused/half_form_steps.hpp"
#include "emu/unit/fused/prepare.hpp"

namespace numemu::unit {
namespace {

constexpr int kMostFractionBits = 13, kHalfSignificand = 11, kSmallestHalf = -24;

bool covers(const FusedRule& rule) {
  return float_form_covers(rule) && rule.fraction_bits <= kMostFractionBits && rule.group % 2 == 0;
}

/// x and y of the proof: half of the room above each operand. Empty where a value, a product or
/// C does not fit.
std::optional<HalfFormPowers> powers_of(const FusedOperands& x) {
  const int power = kMostFractionBits - x.highest_product;
  HalfFormPowers powers;
  powers.rows = 6 - x.a.highest;
  powers.lanes = power - powers.rows;
  const bool empty = x.a.empty() || x.b.empty();
  const bool values_fit = !empty && x.a.present.low + powers.rows >= kSmallestHalf &&
                          x.b.present.low + powers.lanes >= kSmallestHalf &&
                          x.lowest_bit + power >= kSmallestHalf &&
                          x.a.mantissa_bits + x.b.mantissa_bits + 2 <= kHalfSignificand;
  const bool c_fits = x.c.empty() || x.c.low >= -100;
  if (!values_fit || !c_fits) return std::nullopt;
  return powers;
}

}  // namespace

bool multiply_fused_half(const UnitDescription& unit, const Gemm& gemm) {
  if (!half_form_available() || float_form_width() != kHalfFormWidth) return false;
  const auto rule = fused_rule(unit);
  if (!rule || !covers(*rule)) return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands || !float_form_takes(*operands, gemm)) return false;
  FloatFormTile whole = float_form_problem(gemm, *operands);
  whole.half_form = powers_of(*operands);
  if (!whole.half_form) return false;
  run_float_form(whole);
  finish_fused(unit, gemm, *operands);
  return true;
}

}  // namespace numemu::unit
