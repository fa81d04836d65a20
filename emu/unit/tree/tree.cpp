// The trees that the float32 lanes support, and a whole product.
#include "emu/unit/tree/tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "emu/unit/lanes/flush_guard.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/tree/tree_tile.hpp"

namespace numemu::unit {
namespace {

bool covers(const Format& f) {
  return f.kind == Kind::floating && f.is_signed && fits_float32(f) && f.bias >= 1 && f.bias <= 127;
}

/// Bits of the significand of a product.
int product_bits(const Gemm& g) {
  return g.a.format->mantissa_bits + g.b.format->mantissa_bits + 2;
}

std::optional<TreeRule> tree_rule(const UnitDescription& u, const Gemm& g) {
  const Tree& t = u.tree;
  const Subnormals& s = u.subnormals;
  const int group = u.group != 0 ? u.group : u.k;
  const bool whole_steps =
      u.core == CoreKind::tree && float32_register(u) && (u.k == 0 || u.k % group == 0);
  if (!whole_steps || g.k == 0 || !dense_copies_fit(g, std::max(u.k, group)) ||
      (s.flush_c && !s.flush_results))
    return std::nullopt;
  TreeRule rule{.group = group, .plus_zero = t.plus_zero_products, .flush = s.flush_results};
  const bool nearest = u.accumulator.rounding == Rounding{} && !u.accumulator.overflow_to_infinity;
  // A tiny result is the same before and after rounding where it cannot lie within half a place of
  // float32 below 2^-126: sums of float32 numbers are multiples of 2^-149, and products have too
  // few bits.
  const bool narrow = product_bits(g) <= 23;
  if (s.flush_results && !narrow) return std::nullopt;
  if (t.leaf == 1 && t.round_products && nearest && (group == 2 || group == 4)) {
    if (s.flush_results && !FlushGuard::kSupported) return std::nullopt;
    return rule;
  }
  if (group != 2 || t.plus_zero_products) return std::nullopt;
  if (t.leaf == 2 && nearest && !s.flush_results && product_bits(g) <= 24) {
    rule.kind = TreeKind::fused;
    return rule;
  }
  const bool to_odd = u.accumulator.rounding == Rounding{.mode = RoundingMode::rodd};
  // Subnormal products would have to be rounded to odd if they were not flushed.
  if (t.leaf == 1 && t.round_products && to_odd && s.flush_results && s.flush_c && narrow) {
    rule.kind = TreeKind::to_odd;
    return rule;
  }
  return std::nullopt;
}

/// What the lanes may meet. Products of `fused` pairs must be float32 numbers, and then so is each
/// on its own; sums to odd must stay below 2^127, where neither rounding overflows.
std::optional<SafeRange> safe_range(const TreeRule& rule, const Gemm& g, const Source<float>& a,
                                    const Source<float>& b) {
  SafeRange range;
  if (rule.kind == TreeKind::fused) {
    const int low = lowest_bit(g.a, magnitudes(g.a, a, g.m, g.k)) +
                    lowest_bit(g.b, magnitudes(g.b, b, g.n, g.k));
    if (low < -149) return std::nullopt;
    range.product_top = 127;
  } else if (rule.kind == TreeKind::to_odd) {
    range.product_top = 125 - log2_ceil(g.k);
    range.c_top = 126;
  }
  return range;
}

/// Whether every sum is zero or at least 2^-126 because products and C are multiples of that: a
/// float32 number of 2^-103 or more is, and what rounding leaves of a sum has no smaller unit.
bool never_tiny(const Gemm& g, const Source<float>& a, const Source<float>& b,
                const std::vector<float>& c) {
  const int low =
      lowest_bit(g.a, magnitudes(g.a, a, g.m, g.k)) + lowest_bit(g.b, magnitudes(g.b, b, g.n, g.k));
  return low >= -126 && std::all_of(c.begin(), c.end(),
                                    [](float x) { return x == 0 || std::fabs(x) >= 0x1p-103f; });
}

/// C as the unit reads it, where the lanes do not do that themselves.
std::vector<float> flushed_c(const UnitDescription& u, const Gemm& g) {
  const auto* c = static_cast<const float*>(g.c);
  std::vector<float> flushed;
  if (c == nullptr || !u.subnormals.flush_c) return flushed;
  flushed.assign(c, c + g.m * g.n);
  for (float& x : flushed) {
    if ((std::bit_cast<std::uint32_t>(x) & 0x7fffffff) < 0x00800000)
      x = u.subnormals.inputs_to_plus_zero ? 0.0f : std::copysign(0.0f, x);
  }
  return flushed;
}

}  // namespace

bool multiply_tree(const UnitDescription& u, const Gemm& g) {
  if (!covers(*g.a.format) || !covers(*g.b.format)) return false;
  std::optional<TreeRule> rule = tree_rule(u, g);
  if (!rule) return false;
  const Source<float> a = decode_lanes(g.a, g.m, g.k), b = decode_lanes(g.b, g.n, g.k);
  const std::optional<SafeRange> range = safe_range(*rule, g, a, b);
  if (!range) return false;
  const Redo redo(g, a, b, *range);
  const std::int64_t instruction = u.k != 0 ? u.k : rule->group;
  const Subnormals& s = u.subnormals;
  const LaneRule read{instruction, s.flush_inputs, s.inputs_to_plus_zero};
  const LaneSide side_a(g.a, a, g.m, g.k, read), side_b(g.b, b, g.n, g.k, read);
  const std::vector<float> c = flushed_c(u, g);
  if (rule->kind == TreeKind::to_odd && never_tiny(g, a, b, c)) rule->flush = false;

  const bool host_flushes = rule->flush && rule->kind == TreeKind::pairwise;
  for_each_lane_part(g, side_a, side_b, instruction,
                     c.empty() ? static_cast<const float*>(g.c) : c.data(),
                     [&](const ChainTile<float, float>& part) {
                       const FlushGuard guard(host_flushes);
                       run_tree_tile(*rule, part);
                     });
  // Infinity and overflow follow IEEE 754 in every kind within its range, so a NaN is a NaN; TwoSum
  // makes NaN of infinity too.
  redo.run(u, g, rule->kind != TreeKind::to_odd);
  return true;
}

}  // namespace numemu::unit
