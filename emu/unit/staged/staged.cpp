// The products that the two-stage kernel supports, and a whole product.
#include "emu/unit/staged/staged.hpp"

#include <algorithm>
#include <optional>

#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/staged/staged_tile.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

/// In units of 2^(E - F) a product is below 2^(F + 2), a sum below 2^(F + 2 + log2 group): with
/// that at most 2^50, the accumulators 2^52 + sum of FirstStage stay in [2^52, 2^53) and 1.5 * 2^52
/// + sum of JoinParts does too. In units of 2^(E2 - sum_bits) the sum is below 2^(sum_bits + 2 +
/// log2 group) and C below 2^(sum_bits + 1): both together must stay below 2^53.
bool StagedRule::fits_double() const {
  const int growth = 2 + log2_ceil(group);
  return fraction_bits >= 0 && fraction_bits + growth <= 50 && c_bits >= 0 && c_bits <= sum_bits &&
         sum_bits + growth + 1 <= 52 && floor >= -1000 && floor <= 200;
}

namespace {

/// The largest magnitude that counts as finite with products_overflow is below 2^128.
constexpr int kProductTop = 128;

bool covered(const Format& format) {
  return format.kind == Kind::floating && format.is_signed && fits_float32(format) &&
         format.mantissa_bits > 0 && format.bias >= 1 && format.bias <= 127;
}

std::optional<StagedRule> staged_rule(const UnitDescription& u, std::int64_t k) {
  const Alignment& a = u.alignment;
  if (u.core != CoreKind::fused || u.c_entry != CEntry::after_alignment || !float32_register(u) ||
      a.zero_exponent != kStagedSmallest)
    return std::nullopt;
  const std::int64_t group = u.group != 0 ? u.group : u.k;
  const std::int64_t instruction = u.k != 0 ? u.k : group;
  // Slices must be whole steps, and steps must not straddle instructions.
  if (k == 0 || group == 0 || kStagedSlice % group != 0 || instruction % group != 0 ||
      (a.parts != 1 && (a.parts != 2 || group % 2 != 0)))
    return std::nullopt;
  StagedRule rule;
  rule.group = static_cast<int>(group);
  rule.parts = a.parts;
  rule.fraction_bits = a.fraction_bits;
  rule.zero_exponent = *a.zero_exponent;
  rule.floor = a.floor.value_or(-1000);
  rule.sum_bits = u.second.fraction_bits;
  rule.c_bits = u.second.c_fraction_bits;
  rule.c_dropped = u.second.c_dropped.value_or(kNeverDropped);
  if (!rule.fits_double() || rule.c_dropped < 0 || rule.c_dropped > kNeverDropped)
    return std::nullopt;
  return rule;
}

}  // namespace

bool multiply_staged(const UnitDescription& u, const Gemm& g) {
  if (!covered(*g.a.format) || !covered(*g.b.format)) return false;
  const std::optional<StagedRule> rule = staged_rule(u, g.k);
  if (!rule) return false;
  const Source<float> a = decode_lanes(g.a, g.m, g.k), b = decode_lanes(g.b, g.n, g.k);
  // NaN and infinity among the operands leave NaN behind (infinity times a zero of the panel), or
  // the infinity that is due; registers that overflow before the last step leave NaN too.
  SafeRange range;
  if (u.products_overflow) range.product_top = kProductTop;
  const Redo redo(g, a, b, range);

  const bool swap = g.m > g.n;
  StagedTile whole;
  whole.rule = *rule;
  const ChainSide<float> side_a{a.values, a.row, a.depth}, side_b{b.values, b.row, b.depth};
  whole.rows = swap ? side_b : side_a;
  whole.lanes = swap ? side_a : side_b;
  whole.row_emin = smallest_normal_exponent(*(swap ? g.b : g.a).format);
  whole.lane_emin = smallest_normal_exponent(*(swap ? g.a : g.b).format);
  whole.k = g.k;
  const std::int64_t instruction = u.k != 0 ? u.k : rule->group;
  whole.padded_k = (g.k + instruction - 1) / instruction * instruction;
  whole.row_stride = swap ? 1 : g.n;
  whole.lane_stride = swap ? g.n : 1;
  whole.c = static_cast<const float*>(g.c);
  whole.d = static_cast<float*>(g.d);
  constexpr TileShape kShape{.rows = 256, .lanes = 512, .granule = 32};
  for_each_tile(std::min(g.m, g.n), std::max(g.m, g.n), g.k, kShape, [&](const Tile& tile) {
    StagedTile part = whole;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.lane_begin = tile.lane_begin;
    part.lane_end = tile.lane_end;
    run_staged_tile(part);
  });
  redo.run(u, g);
  return true;
}

}  // namespace numemu::unit
