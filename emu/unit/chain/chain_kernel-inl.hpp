// The register block of a chain: rows x vectors of accumulators; once per Highway target.
#if defined(NUMEMU_CHAIN_KERNEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_CHAIN_KERNEL_INL
#undef NUMEMU_CHAIN_KERNEL_INL
#else
#define NUMEMU_CHAIN_KERNEL_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "emu/unit/chain/chain_pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of the largest block: 12 x 2 of 32 registers, 6 x 2 of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kMaxRows = 12;
#else
constexpr int kMaxRows = 6;
#endif

/// a * b + sum with one rounding. Without the instruction (SSE4 and older) lane by lane through the
/// C library; in double the caller promises that nothing is rounded.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FusedMulAdd(D d, V a, V b, V sum) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(a, b, sum);
#else
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<T, double>) {
    return hn::Add(hn::Mul(a, b), sum);
  } else {
    constexpr std::size_t kLanes = hn::MaxLanes(D());
    HWY_ALIGN T x[kLanes], y[kLanes], z[kLanes];
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    hn::Store(sum, d, z);
    for (std::size_t i = 0; i < kLanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return hn::Load(d, z);
  }
#endif
}

/// Accumulators of kRows rows, one or two vectors wide; recursion keeps every one in a register.
template <class D, int kRows, int kVectors>
struct Accumulators {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  V first, second;
  Accumulators<D, kRows - 1, kVectors> rest;

  HWY_INLINE void LoadFrom(D d, const T* sums) {
    const std::size_t lanes = hn::Lanes(d);
    first = hn::Load(d, sums);
    if constexpr (kVectors == 2) second = hn::Load(d, sums + lanes);
    rest.LoadFrom(d, sums + kVectors * lanes);
  }
  HWY_INLINE void Clear(D d) {
    first = hn::Zero(d);
    if constexpr (kVectors == 2) second = hn::Zero(d);
    rest.Clear(d);
  }
  HWY_INLINE void MulAdd(D d, const T* row, V b_first, V b_second) {
    const V a = hn::Set(d, row[0]);
    first = FusedMulAdd(d, a, b_first, first);
    if constexpr (kVectors == 2) second = FusedMulAdd(d, a, b_second, second);
    rest.MulAdd(d, row + 1, b_first, b_second);
  }
  /// MulAdd() of rows[i][k], rows that are apart.
  HWY_INLINE void MulAddApart(D d, const T* const* rows, std::int64_t k, V b_first, V b_second) {
    const V a = hn::Set(d, rows[0][k]);
    first = FusedMulAdd(d, a, b_first, first);
    if constexpr (kVectors == 2) second = FusedMulAdd(d, a, b_second, second);
    rest.MulAddApart(d, rows + 1, k, b_first, b_second);
  }
  HWY_INLINE void StoreTo(D d, T* sums) const {
    const std::size_t lanes = hn::Lanes(d);
    hn::Store(first, d, sums);
    if constexpr (kVectors == 2) hn::Store(second, d, sums + lanes);
    rest.StoreTo(d, sums + kVectors * lanes);
  }
};

template <class D, int kVectors>
struct Accumulators<D, 0, kVectors> {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  HWY_INLINE void LoadFrom(D, const T*) {}
  HWY_INLINE void Clear(D) {}
  HWY_INLINE void MulAdd(D, const T*, V, V) {}
  HWY_INLINE void MulAddApart(D, const T* const*, std::int64_t, V, V) {}
  HWY_INLINE void StoreTo(D, T*) const {}
};

/// sums[i][j] <- chain over k of fma(rows[k * kRows + i], lanes[k * kVectors * Lanes + j], start),
/// where the start is +0 if `from_zero`, else sums[i][j].
template <class T, int kRows, int kVectors>
HWY_NOINLINE void MultiplyBlock(const T* HWY_RESTRICT rows, const T* HWY_RESTRICT lanes,
                                std::int64_t k_count, bool from_zero, T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  const std::size_t step = hn::Lanes(d);
  Accumulators<hn::ScalableTag<T>, kRows, kVectors> accumulators;
  if (from_zero) {
    accumulators.Clear(d);
  } else {
    accumulators.LoadFrom(d, sums);
  }
  for (std::int64_t k = 0; k < k_count; ++k) {
    const auto b_first = hn::Load(d, lanes);
    const auto b_second = kVectors == 2 ? hn::Load(d, lanes + step) : b_first;
    accumulators.MulAdd(d, rows, b_first, b_second);
    rows += kRows;
    lanes += kVectors * step;
  }
  accumulators.StoreTo(d, sums);
}

/// Rows of a block that is read in place: their addresses and its sums stay in registers.
constexpr int kRowsInPlace = kMaxRows < 8 ? kMaxRows : 8;

/// As MultiplyBlock, element (i, k) of the rows at rows[i][depth[k]]: a row is read run by run.
template <class T, int kVectors, int... kRow>
HWY_NOINLINE void MultiplyInPlace(const T* const* rows, const std::int32_t* depth, const Run* runs,
                                  std::int64_t run_count, const T* HWY_RESTRICT lanes,
                                  bool from_zero, T* HWY_RESTRICT sums,
                                  std::integer_sequence<int, kRow...>) {
  const hn::ScalableTag<T> d;
  const std::size_t step = hn::Lanes(d);
  Accumulators<hn::ScalableTag<T>, sizeof...(kRow), kVectors> accumulators;
  if (from_zero) {
    accumulators.Clear(d);
  } else {
    accumulators.LoadFrom(d, sums);
  }
  for (std::int64_t r = 0; r < run_count; ++r) {
    const std::int32_t offset = depth[runs[r].begin];
    const T* const from[] = {rows[kRow] + offset...};
    const std::int64_t count = runs[r].end - runs[r].begin;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto b_first = hn::Load(d, lanes);
      const auto b_second = kVectors == 2 ? hn::Load(d, lanes + step) : b_first;
      accumulators.MulAddApart(d, from, k, b_first, b_second);
      lanes += kVectors * step;
    }
  }
  accumulators.StoreTo(d, sums);
}

template <class T>
using BlockFunction = void (*)(const T*, const T*, std::int64_t, bool, T*);

template <class T, int kVectors, int... kRowsMinusOne>
BlockFunction<T> BlockOf(std::int64_t rows, std::integer_sequence<int, kRowsMinusOne...>) {
  static constexpr std::array<BlockFunction<T>, sizeof...(kRowsMinusOne)> kBlocks = {
      &MultiplyBlock<T, kRowsMinusOne + 1, kVectors>...};
  return kBlocks[static_cast<std::size_t>(rows - 1)];
}

/// The block of `rows` (1..kMaxRows) rows and one or two vectors.
template <class T>
BlockFunction<T> BlockFor(std::int64_t rows, std::int64_t vectors) {
  constexpr std::make_integer_sequence<int, kMaxRows> kRows;
  return vectors == 2 ? BlockOf<T, 2>(rows, kRows) : BlockOf<T, 1>(rows, kRows);
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_CHAIN_KERNEL_INL
