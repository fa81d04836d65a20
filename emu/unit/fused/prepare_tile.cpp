// Cuts a fused product into tiles and works out what their steps need.
#include "emu/unit/fused/prepare_tile.hpp"

#include <algorithm>

#include "formats/float_guard.hpp"

namespace numemu::unit {
namespace {

/// Lanes of the widest panel.
constexpr std::int64_t kFusedPanel = 32;
/// Below every exponent that can occur: what drops out, or a missing floor.
constexpr int kNever = -4000;
constexpr int kBaseOfDropping = 1024;
/// A step's largest exponent is usually some binades below the largest possible one.
constexpr int kUsuallyBelow = 4;

}  // namespace

FusedSteps fused_steps(const UnitDescription& unit, const FusedOperands& o) {
  const FusedRule& rule = o.rule;
  FusedSteps steps;
  steps.rule = rule;
  steps.base = rule.zeros_drop ? kBaseOfDropping : -rule.zero_exponent;
  // The register is a multiple of the lowest bit of all addends so far: C and products, cut or
  // rounded to coarser multiples.
  const bool c_joins = !rule.c_at_end && !o.c.empty();
  const bool products = !o.a.empty() && !o.b.empty();
  steps.lowest = c_joins ? (products ? std::min(o.c.low, o.lowest_bit) : o.c.low) : o.lowest_bit;
  // A register that saturates then holds the largest number, 2^top - 2^(top - 1 - kept bits).
  if (!o.bounded && !rule.to_infinity)
    steps.lowest = std::min(steps.lowest, rule.top - 1 - rule.kept_bits);
  const int uncut = steps.lowest + rule.fraction_bits;
  steps.least = std::max(rule.floor.value_or(kNever), uncut);
  steps.exponent_of_zero_c = rule.zero_c_drops ? kNever : rule.zero_exponent;
  steps.bounded = o.bounded;
  steps.plain_worthwhile = uncut + kUsuallyBelow >= o.highest_product;
  steps.nan_code = unit.nan_code;
  return steps;
}

void run_fused_tiles(const Gemm& gemm, const FusedOperands& o, const FusedSteps& steps,
                     const std::function<void(const FusedTile&)>& run) {
  const bool swap = lanes_are_a(gemm.m, gemm.n, kFusedPanel);
  FusedTile whole;
  whole.steps = &steps;
  whole.rows = swap ? &o.b : &o.a;
  whole.lanes = swap ? &o.a : &o.b;
  whole.row_stride = swap ? 1 : gemm.n;
  whole.lane_stride = swap ? gemm.n : 1;
  whole.k = gemm.k;
  whole.c = gemm.c;
  whole.d = gemm.d;
  const std::int64_t rows = swap ? gemm.n : gemm.m, lanes = swap ? gemm.m : gemm.n;
  for_each_tile(rows, lanes, gemm.k, {.granule = kFusedPanel}, [&](const Tile& tile) {
    FusedTile part = whole;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.lane_begin = tile.lane_begin;
    part.lane_end = tile.lane_end;
    const FloatGuard toward_zero(HostRounding::toward_zero);
    run(part);
  });
}

}  // namespace numemu::unit
