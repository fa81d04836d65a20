// The steps of trees of rounded sums, in float32 vectors; per Highway target.
#include "emu/unit/tree/tree.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/tree/tree.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "emu/unit/chain/chain_kernel-inl.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
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
  /// nearer to zero with the last bit set are those of the odd one. Where an infinity takes part, e
  /// is NaN, and so is what is left to the reference.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V AddToOdd(D d, V x, V y) const {
    const hn::RebindToSigned<D> d_bits;
    const V s = hn::Add(x, y), y_part = hn::Sub(s, x);
    const V e = hn::Add(hn::Sub(x, hn::Sub(s, y_part)), hn::Sub(y, y_part));
    const auto bits = hn::BitCast(d_bits, s);
    const auto apart = hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(d_bits, e)));
    const auto odd = hn::Or(hn::Add(bits, apart), hn::Set(d_bits, 1));
    const auto exact = hn::RebindMask(d_bits, hn::Eq(e, hn::Zero(d)));
    const V t = hn::BitCast(d, hn::IfThenElse(exact, bits, odd));
    return Flushed(d, hn::IfThenElse(hn::IsNaN(e), e, t));
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

namespace {

/// One tile on the calling thread, which must hold a FloatGuard and, for rules that flush and do
/// not round to odd, a FlushGuard. `tile.k` is a multiple of the group.
void run_tree_tile(const TreeRule& rule, const ChainTile<float, float>& tile) {
  HWY_DYNAMIC_DISPATCH(RunTreeTile)(rule, tile);
}

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
#endif  // HWY_ONCE
