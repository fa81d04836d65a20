// Exact sums of a group and C in doubles, rounded to odd on the way to float32; per Highway target.
#include "emu/unit/tree/exact_groups_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/tree/exact_groups_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include "emu/unit/chain/chain_kernel-inl.hpp"
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

/// x + y rounded to odd: between the sum and its neighbour on the side of the error, the one nearer
/// to zero with its last bit set. What is rounded to odd with two or more bits to spare rounds on
/// as the exact sum would (Boldo and Melquiond).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AddToOdd(D d, V x, V y) {
  const hn::RebindToSigned<D> d_bits;
  const Sum<V> s = TwoSum(x, y);
  const auto bits = hn::BitCast(d_bits, s.sum);
  const auto apart = hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(d_bits, s.error)));
  const auto odd = hn::Or(hn::Add(bits, apart), hn::Set(d_bits, 1));
  const auto exact = hn::RebindMask(d_bits, hn::Eq(s.error, hn::Zero(d)));
  return hn::BitCast(d, hn::IfThenElse(exact, bits, odd));
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

void run_exact_group_tile(const ExactGroupRule& rule, const ChainTile<float, float>& tile) {
  HWY_DYNAMIC_DISPATCH(RunExactGroupTile)(rule, tile);
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
