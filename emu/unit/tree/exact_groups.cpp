// The number of doubles for a group's exact sum, and a whole product.
#include "emu/unit/tree/exact_groups.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/tree/exact_groups_tile.hpp"

namespace numemu::unit {
namespace {

bool covered(const Format& f) {
  return f.kind == Kind::floating && f.is_signed && fits_float32(f) && f.bias >= 1 && f.bias <= 127;
}

bool covered(const UnitDescription& u, int group) {
  const bool scaled = u.scaling.point == Scaling::Point::after_sum;
  const bool sizes =
      (group == 1 || group == 2 || group == 4 || group == 8) && (u.k == 0 || u.k % group == 0);
  return u.core == CoreKind::exact && float32_register(u) && sizes &&
         (scaled || u.scaling.point == Scaling::Point::none) && u.scaling.shift >= 0 &&
         u.scaling.shift <= 64;
}

int finite_top(const Operand& operand, const Magnitudes& found) {
  return std::min(top_of(found.most), exponents_of(*operand.format).top);
}

/// Products are multiples of 2^low below 2^top, sums of a group below 2^(top + growth). One double
/// holds those if they have at most 53 bits. Two: multiples of 2^m, m = low + 50 - growth, have at
/// most top + growth - m <= 50 bits, rests of at most 2^(m - 1) add up to at most 2^(low + 49); the
/// splitter needs top <= m + 50.
bool choose_splitter(int low, int top, ExactGroupRule& rule) {
  const int growth = log2_ceil(rule.group);
  if (rule.group == 1) return true;
  if (top + growth - low <= 53) return true;
  if (rule.group == 2) {
    rule.splitter = 1;
    return true;
  }
  const int middle = low + 50 - growth;
  if (top + growth - middle > 50) return false;
  rule.splitter = std::ldexp(1.5, 52 + middle);
  return true;
}

}  // namespace

bool multiply_exact_groups(const UnitDescription& u, const Gemm& g) {
  const int group = u.group != 0 ? u.group : u.k;
  if (g.k == 0 || !covered(u, group) || !dense_copies_fit(g, std::max(u.k, group)) ||
      !covered(*g.a.format) || !covered(*g.b.format))
    return false;
  const Source<float> a = decode_lanes(g.a, g.m, g.k), b = decode_lanes(g.b, g.n, g.k);
  const Magnitudes of_a = magnitudes(g.a, a, g.m, g.k), of_b = magnitudes(g.b, b, g.n, g.k);
  ExactGroupRule rule{.group = group, .scale = std::ldexp(1.0, -u.scaling.shift)};
  if (!choose_splitter(lowest_bit(g.a, of_a) + lowest_bit(g.b, of_b),
                       finite_top(g.a, of_a) + finite_top(g.b, of_b), rule))
    return false;
  const std::int64_t instruction = u.k != 0 ? u.k : group;
  const LaneRule read{.instruction = instruction};
  const LaneSide side_a(g.a, a, g.m, g.k, read), side_b(g.b, b, g.n, g.k, read);

  for_each_lane_part(
      g, side_a, side_b, instruction, static_cast<const float*>(g.c),
      [&](const ChainTile<float, float>& part) { run_exact_group_tile(rule, part); });
  // TwoSum and the splitter make NaN of infinity, and the splitter loses the sign of -0.
  SafeRange range;
  range.negative_zero = rule.splitter == 0;
  Redo(g, a, b, range).run(u, g);
  return true;
}

}  // namespace numemu::unit
