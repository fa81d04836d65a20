// Copies between gathered operands, packed panels and output matrices; once per Highway target.
#if defined(NUMEMU_CHAIN_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_CHAIN_PACK_INL
#undef NUMEMU_CHAIN_PACK_INL
#else
#define NUMEMU_CHAIN_PACK_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "emu/unit/chain/chain.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
template <class T>
constexpr std::int64_t kSquare = 1;

template <class T, class From>
HWY_INLINE void TransposeSquare(const From& from, T* to, std::int64_t) {
  *to = *from(0);
}
#else
/// Side of the squares that are transposed in 128-bit registers.
template <class T>
constexpr std::int64_t kSquare = 16 / sizeof(T);

/// to[j * to_stride + i] = from[i](j) for a square; from(i) points at kSquare consecutive elements.
template <class From>
HWY_INLINE void TransposeSquare(const From& from, float* to, std::int64_t to_stride) {
  const hn::Full128<float> d;
  const hn::Full128<double> pairs;
  const auto r0 = hn::LoadU(d, from(0)), r1 = hn::LoadU(d, from(1));
  const auto r2 = hn::LoadU(d, from(2)), r3 = hn::LoadU(d, from(3));
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_stride);
}

template <class From>
HWY_INLINE void TransposeSquare(const From& from, double* to, std::int64_t to_stride) {
  const hn::Full128<double> d;
  const auto r0 = hn::LoadU(d, from(0)), r1 = hn::LoadU(d, from(1));
  hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + to_stride);
}
#endif

/// Covers [0, count) with vectors of the largest size that fits, the last overlapping its
/// neighbour: calls visit(tag, first element) for each, so that a loop over depths inside `visit`
/// has no branches.
template <class T, class Visit>
HWY_INLINE void CoverRun(std::int64_t count, const Visit& visit) {
  const auto cover = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (count < lanes) return false;
    for (std::int64_t i = 0; i + lanes <= count; i += lanes) visit(d, i);
    if (count % lanes != 0) visit(d, count - lanes);
    return true;
  };
  if (count > 0 && !cover(hn::ScalableTag<T>()) && !cover(hn::CappedTag<T, 2 * kSquare<T>>()) &&
      !cover(hn::CappedTag<T, kSquare<T>>())) {
    for (std::int64_t i = 0; i < count; ++i) visit(hn::CappedTag<T, 1>(), i);
  }
}

template <class T>
HWY_INLINE void CopyRun(const T* from, T* to, std::int64_t count) {
  CoverRun<T>(count, [=](auto d, std::int64_t i)
                         HWY_ATTR { hn::StoreU(hn::LoadU(d, from + i), d, to + i); });
}

/// Depths [begin, end) whose elements are neighbours in memory.
struct Run {
  std::int32_t begin, end;
};

/// Splits `count` depths into runs; returns how many were written to `runs` (room for `count`).
inline std::int64_t FindRuns(const std::int32_t* depth, std::int64_t count, Run* runs) {
  std::int64_t found = 0;
  for (std::int32_t k = 0; k < count; ++k) {
    if (k == 0 || depth[k] != depth[k - 1] + 1) runs[found++] = {k, k};
    ++runs[found - 1].end;
  }
  return found;
}

/// What Pack copies: rows [first, first + count) and a slice of the depth, split into runs.
template <class T>
struct PackedSlice {
  const ChainSide<T>& side;
  std::int64_t first, count, width;  ///< width: elements per depth in the panel, at least count
  const std::int32_t* depth;         ///< offsets of the slice
  std::int64_t depth_count;
  const Run* runs;
  std::int64_t run_count;
};

/// packed[k * width + i] = element (first + i, k of the slice), zero for i in [count, width).
template <class T>
void Pack(const PackedSlice<T>& slice, T* packed);

// Defined in chain_tile.cpp alone: compiling them in every
// tile takes a tenth of its time.
extern template void Pack(const PackedSlice<float>& slice, float* packed);
extern template void Pack(const PackedSlice<double>& slice, double* packed);

/// to[j * to_stride + i] = from[i * width + j] for i < rows, j < lanes.
template <class T>
void StoreTransposed(const T* from, std::int64_t width, std::int64_t rows, std::int64_t lanes,
                     T* to, std::int64_t to_stride) {
  constexpr std::int64_t kSide = kSquare<T>;
  if (rows < kSide || lanes < kSide) {
    for (std::int64_t j = 0; j < lanes; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) to[j * to_stride + i] = from[i * width + j];
    }
    return;
  }
  // The last square of each direction overlaps the one before it instead of leaving single
  // elements.
  for (std::int64_t j = 0; j < lanes; j += kSide) {
    const std::int64_t lane = std::min(j, lanes - kSide);
    for (std::int64_t i = 0; i < rows; i += kSide) {
      const std::int64_t row = std::min(i, rows - kSide);
      const T* square = from + row * width + lane;
      TransposeSquare([=](int r) HWY_ATTR { return square + r * width; },
                      to + lane * to_stride + row, to_stride);
    }
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_CHAIN_PACK_INL
