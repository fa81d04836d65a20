// The products that the float form supports, the proof of exactness, and their tiles.
//
// A step aligns to 2^E and cuts each addend's magnitude to a multiple of u = 2^(E - F). With
// M = 2^(E + 23 - F), float32 numbers in [M, 2M) are the multiples of u: under rounding toward
// zero, adding an addend x >= 0 to a sum in there by one fused multiply-add adds exactly x cut to a
// multiple of u, as long as the sum stays below 2M. Negative addends go to a second sum from -M on.
//   Below 2M: a product is below 4 * 2^E (two significands below 2), C below 2 * 2^E, so a sum
//   grows by less than (4 G + 2) 2^E <= M where 4 G + 2 <= 2^(23 - F).
//   The end: the two sums differ in sign and are multiples of u below 2M; their sum is one below M,
//   so it has at most 23 bits and is exact.
//   M is a normal number and 2M is finite: -126 <= E and E + 23 - F <= 126.
#include "emu/unit/fused/float_form.hpp"

#include <algorithm>
#include <cmath>

#include "emu/unit/fused/float_form_tile.hpp"
#include "emu/unit/fused/half_form_steps.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {
namespace {

/// |C| < 2^99 and 2^36 products below 2^62 keep every sum below 2^100, so that M is in range for
/// every F.
constexpr float kLargestC = 0x1p99f;
constexpr int kHighestProduct = 60, kLowestProduct = -126;

bool narrow(const FusedSide& side) { return side.highest - side.lowest <= kFloatFormSpread; }

bool c_in_range(const FusedRule& rule, const Gemm& gemm) {
  if (gemm.c == nullptr || rule.half) return true;
  const auto* c = static_cast<const float*>(gemm.c);
  // C that is not finite is read as +0; finish_fused() looks at it again.
  return std::all_of(c, c + gemm.m * gemm.n,
                     [](float x) { return !std::isfinite(x) || std::abs(x) < kLargestC; });
}

/// Exponents that fit the bytes and the range of M; none lies below the floor.
bool in_range(const FusedOperands& x) {
  const int lowest = x.a.lowest + x.b.lowest;
  return narrow(x.a) && narrow(x.b) && lowest >= kLowestProduct &&
         lowest >= x.rule.floor.value_or(kLowestProduct) && x.highest_product <= kHighestProduct;
}

FloatFormSide side_of(const FusedSide& side) {
  return {{side.values.values, side.values.row, side.values.depth}, side.emin, side.lowest};
}

bool float_form_covers(const FusedRule& rule) {
  return rule.usual_register() && !rule.scaled && !rule.pairs_mod4 && !rule.c_at_end &&
         rule.fraction_bits >= 1 && rule.fraction_bits <= 23 &&
         4 * std::int64_t{rule.group} + 2 <= std::int64_t{1} << (23 - rule.fraction_bits) &&
         float_form_available(rule.half);
}

/// The whole product as one tile.
FloatFormTile float_form_problem(const Gemm& gemm, const FusedOperands& x) {
  FloatFormTile whole;
  whole.rows = side_of(x.a);
  whole.lanes = side_of(x.b);
  whole.row_end = gemm.m;
  whole.lane_end = gemm.n;
  whole.k = gemm.k;
  whole.steps = x.rule.steps(gemm.k);
  whole.group = x.rule.group;
  whole.fraction_bits = x.rule.fraction_bits;
  whole.kept_bits = x.rule.kept_bits;
  whole.half = x.rule.half;
  whole.c = gemm.c;
  whole.d = gemm.d;
  whole.row_stride = gemm.n;
  whole.lane_stride = 1;
  return whole;
}

bool float_form_takes(const FusedOperands& x, const Gemm& gemm) {
  return float_form_covers(x.rule) && x.zeros_never_count && in_range(x) &&
         c_in_range(x.rule, gemm);
}

/// Cuts the product for threads.
void run_float_form(FloatFormTile whole) {
  // Few columns would leave lanes empty: then the product is computed transposed.
  if (whole.lane_end < float_form_width() && whole.row_end > whole.lane_end) {
    std::swap(whole.rows, whole.lanes);
    std::swap(whole.row_end, whole.lane_end);
    std::swap(whole.row_stride, whole.lane_stride);
    if (whole.half_form) std::swap(whole.half_form->rows, whole.half_form->lanes);
  }
  const TileShape shape{.rows = 256, .lanes = 512, .granule = float_form_width()};
  for_each_tile(whole.row_end, whole.lane_end, whole.k, shape, [&](const Tile& cut) {
    FloatFormTile tile = whole;
    tile.row_begin = cut.row_begin;
    tile.row_end = cut.row_end;
    tile.lane_begin = cut.lane_begin;
    tile.lane_end = cut.lane_end;
    run_float_form_tile(tile);
  });
}

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

bool multiply_fused_float(const UnitDescription& unit, const Gemm& gemm) {
  const auto rule = fused_rule(unit);
  if (!rule || !float_form_covers(*rule)) return false;
  const auto operands = prepare_fused(unit, gemm);
  // A float16 register that overflows holds infinity from then on, in this form as in the unit.
  if (!operands || !float_form_takes(*operands, gemm)) return false;
  run_float_form(float_form_problem(gemm, *operands));
  finish_fused(unit, gemm, *operands);
  return true;
}

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
