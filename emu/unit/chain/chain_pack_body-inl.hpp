// How panels are packed; once per Highway target, in chain_tile.cpp.
#if defined(NUMEMU_CHAIN_PACK_BODY_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_CHAIN_PACK_BODY_INL
#undef NUMEMU_CHAIN_PACK_BODY_INL
#else
#define NUMEMU_CHAIN_PACK_BODY_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "emu/unit/chain/chain_pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// packed[k * width + i] = 0 for i in [count, width).
template <class T>
void ZeroTail(const PackedSlice<T>& slice, T* packed) {
  CoverRun<T>(slice.width - slice.count, [&](auto d, std::int64_t i) HWY_ATTR {
    T* to = packed + slice.count + i;
    const std::int64_t width = slice.width;
    for (std::int64_t k = slice.depth_count; k > 0; --k, to += width)
      hn::StoreU(hn::Zero(d), d, to);
  });
}

/// Rows that are neighbours in memory, run by run. False where they are too scattered for a gain.
template <class T>
bool PackRowRuns(const PackedSlice<T>& slice, T* packed) {
  constexpr std::int64_t kMaxRuns = 16, kWorthwhile = 4;
  const std::int32_t* row = slice.side.row + slice.first;
  std::int64_t begin[kMaxRuns + 1], runs = 0;
  for (std::int64_t i = 0; i < slice.count; ++i) {
    if (i != 0 && row[i] == row[i - 1] + 1) continue;
    if (runs == kMaxRuns) return false;
    begin[runs++] = i;
  }
  if (slice.count > 1 && runs * kWorthwhile > slice.count) return false;
  begin[runs] = slice.count;
  // Copies in locals: vector stores may alias anything, so the compiler would read the members
  // again each time.
  const std::int32_t* const depth = slice.depth;
  const std::int64_t depth_count = slice.depth_count, width = slice.width;
  for (std::int64_t r = 0; r < runs; ++r) {
    const T* values = slice.side.values + row[begin[r]];
    CoverRun<T>(begin[r + 1] - begin[r], [&](auto d, std::int64_t i) HWY_ATTR {
      const T* from = values + i;
      T* to = packed + begin[r] + i;
      for (std::int64_t k = 0; k < depth_count; ++k, to += width)
        hn::StoreU(hn::LoadU(d, from + depth[k]), d, to);
    });
  }
  return true;
}

/// kSquare rows from i on: transposed squares along each run of depths, the last one overlapping
/// its neighbour.
template <class T>
HWY_INLINE void PackSquares(const PackedSlice<T>& slice, std::int64_t i, T* packed) {
  constexpr std::int64_t kSide = kSquare<T>;
  const T* source[kSide];
  for (std::int64_t j = 0; j < kSide; ++j)
    source[j] = slice.side.values + slice.side.row[slice.first + i + j];
  const std::int64_t width = slice.width;
  const std::int32_t* const depth = slice.depth;
  const auto square = [&](std::int64_t k) HWY_ATTR {
    const std::int32_t offset = depth[k];
    TransposeSquare([&](int j) HWY_ATTR { return source[j] + offset; }, packed + k * width + i,
                    width);
  };
  for (std::int64_t r = 0; r < slice.run_count; ++r) {
    const auto [begin, end] = slice.runs[r];
    std::int64_t k = begin;
    for (; k + kSide <= end; k += kSide) square(k);
    if (k < end && end - begin >= kSide) {
      square(end - kSide);
      continue;
    }
    for (; k < end; ++k) {
      for (std::int64_t j = 0; j < kSide; ++j) packed[k * width + i + j] = source[j][depth[k]];
    }
  }
}

template <class T>
void Pack(const PackedSlice<T>& slice, T* packed) {
  ZeroTail(slice, packed);
  if (PackRowRuns(slice, packed)) return;
  constexpr std::int64_t kSide = kSquare<T>;
  const std::int64_t count = slice.count;
  std::int64_t i = 0;
  for (; i + kSide <= count; i += kSide) PackSquares(slice, i, packed);
  if (i < count && count >= kSide) {
    PackSquares(slice, count - kSide, packed);
    return;
  }
  for (; i < count; ++i) {
    const T* source = slice.side.values + slice.side.row[slice.first + i];
    for (std::int64_t k = 0; k < slice.depth_count; ++k)
      packed[k * slice.width + i] = source[slice.depth[k]];
  }
}

template void Pack(const PackedSlice<float>& slice, float* packed);
template void Pack(const PackedSlice<double>& slice, double* packed);

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_CHAIN_PACK_BODY_INL
