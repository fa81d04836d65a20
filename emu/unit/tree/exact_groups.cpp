// Exact sums of a group and C in doubles, rounded to odd on the way to float32; per Highway target.
#include "emu/unit/tree/exact_groups.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/tree/exact_groups.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "emu/unit/chain/chain_kernel-inl.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/narrow-inl.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/tree/group_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// x + y = sum + error exactly (Knuth's TwoSum).
template <class V>
struct Sum {
  V sum, error;
};
template <class V>
HWY_INLINE Sum<V> TwoSum(V x, V y) {
  const V sum = hn::Add(x, y), y_part = hn::Sub(sum, x);
  return {sum, hn::Add(hn::Sub(x, hn::Sub(sum, y_part)), hn::Sub(y, y_part))};
}

template <int kSize, bool kSplit>
struct ExactGroup {
  using Number = double;
  static constexpr int kGroup = kSize;
  double scale, splitter;

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Step(D d, const V* a, const V* b, V c) const {
    const V exact = kSplit ? SplitSum(d, a, b, c) : PlainSum(d, a, b, c);
    return hn::PromoteTo(d, ToFloat32(d, exact));
  }

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V PlainSum(D d, const V* a, const V* b, V c) const {
    V sum = hn::Mul(a[0], b[0]);
    ForConstants<kSize - 1>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
      sum = FusedMulAdd(d, a[k + 1], b[k + 1], sum);
    });
    return AddToOdd(d, hn::Mul(sum, hn::Set(d, scale)), c);
  }

  /// H + L + C, H and L exact (of two products each is one). H + (C + L) = v + (r + t), r and t the
  /// errors of two TwoSums. If the small sum r + t is exact, so is the argument of the last
  /// rounding to odd. If it is not, then r is not zero, so H and C + L do not cancel (Sterbenz:
  /// else their sum were exact), v is larger than 2^50 units of the small sum's last place, and
  /// rounding that to odd first changes nothing.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V SplitSum(D d, const V* a, const V* b, V c) const {
    const V unit = hn::Set(d, scale);
    V high, low;
    if constexpr (kSize == 2) {
      high = hn::Mul(a[0], b[0]);
      low = hn::Mul(a[1], b[1]);
    } else {
      const V middle = hn::Set(d, splitter);
      high = low = hn::Zero(d);
      ForConstants<kSize>([&](auto k) HWY_ATTR __attribute__((always_inline)) {
        const V product = hn::Mul(a[k], b[k]);
        const V multiple = hn::Sub(hn::Add(product, middle), middle);
        high = hn::Add(high, multiple);
        low = hn::Add(low, hn::Sub(product, multiple));
      });
    }
    const Sum<V> lower = TwoSum(c, hn::Mul(low, unit));
    const Sum<V> upper = TwoSum(hn::Mul(high, unit), lower.sum);
    return AddToOdd(d, upper.sum, AddToOdd(d, upper.error, lower.error));
  }
};

template <int kSize>
void RunGroups(const ExactGroupRule& rule, const ChainTile<float, float>& tile) {
  if (rule.splitter == 0) return RunGroupTile(ExactGroup<kSize, false>{rule.scale, 0}, tile);
  RunGroupTile(ExactGroup<kSize, true>{rule.scale, rule.splitter}, tile);
}

void RunExactGroupTile(const ExactGroupRule& rule, const ChainTile<float, float>& tile) {
  switch (rule.group) {
    case 1:
      return RunGroups<1>(rule, tile);
    case 2:
      return RunGroups<2>(rule, tile);
    case 4:
      return RunGroups<4>(rule, tile);
    default:
      return RunGroups<8>(rule, tile);
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunExactGroupTile);

namespace {

/// One tile on the calling thread, which must hold a FloatGuard. `tile.k` is a multiple of the
/// group.
void run_exact_group_tile(const ExactGroupRule& rule, const ChainTile<float, float>& tile) {
  HWY_DYNAMIC_DISPATCH(RunExactGroupTile)(rule, tile);
}

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
#endif  // HWY_ONCE
