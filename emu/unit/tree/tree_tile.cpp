// The steps of trees of rounded sums, in float32 vectors; per Highway target.
#include "emu/unit/tree/tree_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/tree/tree_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <limits>

#include "emu/unit/chain/chain_kernel-inl.hpp"
#include "emu/unit/tree/group_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Products and pairwise sums rounded to nearest even by the host; it also flushes, where the rule
/// does. kPlusZero: added to +0 before it is rounded, a product that is -0 becomes +0, but one
/// that is rounded or flushed to zero keeps its sign.
template <int kSize, bool kPlusZero>
struct Pairwise {
  using Number = float;
  static constexpr int kGroup = kSize;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Step(D d, const V* a, const V* b, V sum) const {
    const V first = Add2(d, a, b);
    if constexpr (kSize == 2) {
      return hn::Add(sum, first);
    } else {
      return hn::Add(sum, hn::Add(first, Add2(d, a + 2, b + 2)));
    }
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Add2(D d, const V* a, const V* b) const {
    return hn::Add(Product(d, a[0], b[0]), Product(d, a[1], b[1]));
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Product(D d, V a, V b) const {
#if HWY_NATIVE_FMA
    return kPlusZero ? hn::MulAdd(a, b, hn::Zero(d)) : hn::Mul(a, b);
#else
    const V product = hn::Mul(a, b);
    if constexpr (!kPlusZero) return product;
    const auto zero = hn::Or(hn::Eq(a, hn::Zero(d)), hn::Eq(b, hn::Zero(d)));
    return hn::IfThenElse(zero, hn::Add(product, hn::Zero(d)), product);
#endif
  }
};

/// A pair of products, their sum and the sum with C, each rounded to odd, tiny ones flushed before.
/// Products are exact or tiny (tree.cpp), no sum reaches 2^127. kFlush false: nothing is ever tiny.
template <bool kFlush>
struct PairToOdd {
  using Number = float;
  static constexpr int kGroup = 2;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Step(D d, const V* a, const V* b, V sum) const {
    const V first = Flushed(d, hn::Mul(a[0], b[0])), second = Flushed(d, hn::Mul(a[1], b[1]));
    return AddToOdd(d, sum, AddToOdd(d, first, second));
  }
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Flushed(D d, V x) const {
    if constexpr (!kFlush) return x;
    const V smallest = hn::Set(d, std::numeric_limits<float>::min());
    return hn::IfThenElse(hn::Lt(hn::Abs(x), smallest), hn::And(x, hn::SignBit(d)), x);
  }
  /// x + y = s + e exactly (TwoSum; no operation rounds e away because subnormals are kept). Where
  /// e is not zero, x + y lies between s and its neighbour on the side of e; the bits of the one
  /// nearer to zero with the last bit set are those of the odd one.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V AddToOdd(D d, V x, V y) const {
    const hn::RebindToSigned<D> d_bits;
    const V s = hn::Add(x, y), y_part = hn::Sub(s, x);
    const V e = hn::Add(hn::Sub(x, hn::Sub(s, y_part)), hn::Sub(y, y_part));
    const auto bits = hn::BitCast(d_bits, s);
    const auto apart = hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(d_bits, e)));
    const auto odd = hn::Or(hn::Add(bits, apart), hn::Set(d_bits, 1));
    const auto exact = hn::RebindMask(d_bits, hn::Eq(e, hn::Zero(d)));
    return Flushed(d, hn::BitCast(d, hn::IfThenElse(exact, bits, odd)));
  }
};

/// Two exact products added and rounded once, then C. The first product is a float32 number.
struct PairFused {
  using Number = float;
  static constexpr int kGroup = 2;
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Step(D d, const V* a, const V* b, V sum) const {
    return hn::Add(sum, FusedMulAdd(d, a[1], b[1], hn::Mul(a[0], b[0])));
  }
};

void RunTreeTile(const TreeRule& rule, const ChainTile<float, float>& tile) {
  switch (rule.kind) {
    case TreeKind::pairwise:
      if (rule.group == 2)
        return rule.plus_zero ? RunGroupTile(Pairwise<2, true>(), tile)
                              : RunGroupTile(Pairwise<2, false>(), tile);
      return rule.plus_zero ? RunGroupTile(Pairwise<4, true>(), tile)
                            : RunGroupTile(Pairwise<4, false>(), tile);
    case TreeKind::to_odd:
      return rule.flush ? RunGroupTile(PairToOdd<true>(), tile)
                        : RunGroupTile(PairToOdd<false>(), tile);
    case TreeKind::fused:
      return RunGroupTile(PairFused(), tile);
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunTreeTile);

void run_tree_tile(const TreeRule& rule, const ChainTile<float, float>& tile) {
  HWY_DYNAMIC_DISPATCH(RunTreeTile)(rule, tile);
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
