// Groups of four in vectors: element k of many groups in one vector.
#if defined(NUMEMU_QUADS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_QUADS_INL
#undef NUMEMU_QUADS_INL
#else
#define NUMEMU_QUADS_INL
#endif
#include <algorithm>
#include <cstdint>

#include "formats/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Elements 0 to 3 of lanes() groups. Transposing is done inside 128-bit blocks: with B blocks in a
/// vector, lane 4 b + v has group v B + b.
struct Quads {
  FloatVector e0, e1, e2, e3;
};

/// 4 x 4 inside each 128-bit block; its own inverse.
HWY_INLINE Quads transposed(const Quads& q) {
  using Wides = hn::RepartitionToWide<Words>;
  constexpr Wides wides;
  const auto low = [&](FloatVector a, FloatVector b)
                       HWY_ATTR { return hn::BitCast(wides, hn::InterleaveLower(kFloats, a, b)); };
  const auto high = [&](FloatVector a, FloatVector b)
                        HWY_ATTR { return hn::BitCast(wides, hn::InterleaveUpper(kFloats, a, b)); };
  const auto low01 = low(q.e0, q.e1), low23 = low(q.e2, q.e3);
  const auto high01 = high(q.e0, q.e1), high23 = high(q.e2, q.e3);
  return {hn::BitCast(kFloats, hn::InterleaveLower(wides, low01, low23)),
          hn::BitCast(kFloats, hn::InterleaveUpper(wides, low01, low23)),
          hn::BitCast(kFloats, hn::InterleaveLower(wides, high01, high23)),
          hn::BitCast(kFloats, hn::InterleaveUpper(wides, high01, high23))};
}

HWY_INLINE Quads load_quads(const float* from) {
  const std::int64_t n = lanes();
  return transposed({hn::LoadU(kFloats, from), hn::LoadU(kFloats, from + n),
                     hn::LoadU(kFloats, from + 2 * n), hn::LoadU(kFloats, from + 3 * n)});
}

/// TableLookupLanes by this puts the word of each group into its lane.
HWY_INLINE auto quad_order() {
  const std::int64_t n = lanes();
  alignas(64) std::int32_t order[hn::MaxLanes(Floats())];
  for (std::int64_t i = 0; i < n; ++i)
    order[i] = static_cast<std::int32_t>((i % 4) * (n / 4) + i / 4);
  return hn::SetTableIndices(kWords, order);
}

/// Stores magnitudes with the signs of x, +0 for 0, NaN as they are.
HWY_INLINE void store_quads(const Quads& magnitudes, const Quads& x, float* to) {
  const auto with_sign = [](FloatVector magnitude, FloatVector like) HWY_ATTR {
    const FloatVector sign = hn::And(like, float_of(set(0x80000000U)));
    return hn::Or(magnitude, hn::IfThenElseZero(hn::Gt(magnitude, hn::Zero(kFloats)), sign));
  };
  const std::int64_t n = lanes();
  const Quads y = transposed({with_sign(magnitudes.e0, x.e0), with_sign(magnitudes.e1, x.e1),
                              with_sign(magnitudes.e2, x.e2), with_sign(magnitudes.e3, x.e3)});
  hn::StoreU(y.e0, kFloats, to);
  hn::StoreU(y.e1, kFloats, to + n);
  hn::StoreU(y.e2, kFloats, to + 2 * n);
  hn::StoreU(y.e3, kFloats, to + 3 * n);
}

/// Whole vectors of groups: `some(g, x, y)` gives the pruned magnitudes of lanes() groups from g on
/// and the groups where they hold; `one(g, to)` prunes one of the others. Returns how many groups
/// that were. x may be y.
template <class Some, class One>
HWY_INLINE std::int64_t prune_vectors(const float* x, std::int64_t groups, float* y,
                                      const Some& some, const One& one) {
  const std::int64_t n = lanes();
  alignas(64) float sure[hn::MaxLanes(Floats())], copy[4 * hn::MaxLanes(Floats())];
  std::int64_t g = 0;
  for (; g + n <= groups; g += n) {
    const Quads from = load_quads(x + 4 * g);
    Quads to;
    const FloatMask fine = some(g, from, to);
    if (HWY_LIKELY(hn::AllTrue(kFloats, fine))) {
      store_quads(to, from, y + 4 * g);
      continue;
    }
    store_quads(to, from, copy);
    hn::Store(hn::IfThenElseZero(fine, set(1.0F)), kFloats, sure);
    for (std::int64_t lane = 0; lane < n; ++lane) {
      const std::int64_t group = lane % 4 * (n / 4) + lane / 4;
      if (sure[lane] == 0) one(g + group, copy + 4 * group);
    }
    std::copy_n(copy, 4 * n, y + 4 * g);
  }
  return g;
}

/// Groups with at most two elements that are not zero: the second smallest magnitude is zero. Only
/// for numbers.
HWY_INLINE FloatMask at_most_two(const Quads& a) {
  const FloatVector low01 = hn::Min(a.e0, a.e1), high01 = hn::Max(a.e0, a.e1);
  const FloatVector low23 = hn::Min(a.e2, a.e3), high23 = hn::Max(a.e2, a.e3);
  const FloatVector second = hn::Min(hn::Max(low01, low23), hn::Min(high01, high23));
  return hn::Eq(second, hn::Zero(kFloats));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#endif
