// Squares of 4 x 4 elements in 128-bit vectors, within squares of 16 x 16: a row of those is a
// cache line, which is read and written whole. Dispatched at run time.
#include "formats/simd/transpose.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "formats/simd/transpose.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kTile = 16;

// Element by element: what is left at the borders.
void transpose_rest(const std::uint32_t* in, std::int64_t rows, std::int64_t columns,
                    std::int64_t in_stride, std::uint32_t* out, std::int64_t out_stride) {
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(out + c * out_stride + r, in + r * in_stride + c, sizeof *out);
}

#if HWY_TARGET != HWY_SCALAR

HWY_INLINE void transpose_4x4(const std::uint32_t* in, std::int64_t in_stride, std::uint32_t* out,
                              std::int64_t out_stride) {
  const hn::FixedTag<std::uint32_t, 4> words;
  const hn::Repartition<std::uint64_t, decltype(words)> pairs;
  const auto a = hn::LoadU(words, in), b = hn::LoadU(words, in + in_stride);
  const auto c = hn::LoadU(words, in + 2 * in_stride), d = hn::LoadU(words, in + 3 * in_stride);
  const auto ab0 = hn::BitCast(pairs, hn::InterleaveLower(words, a, b));
  const auto ab2 = hn::BitCast(pairs, hn::InterleaveUpper(words, a, b));
  const auto cd0 = hn::BitCast(pairs, hn::InterleaveLower(words, c, d));
  const auto cd2 = hn::BitCast(pairs, hn::InterleaveUpper(words, c, d));
  const auto store = [&](auto v, std::int64_t row) HWY_ATTR {
    hn::StoreU(hn::BitCast(words, v), words, out + row * out_stride);
  };
  store(hn::InterleaveLower(pairs, ab0, cd0), 0);
  store(hn::InterleaveUpper(pairs, ab0, cd0), 1);
  store(hn::InterleaveLower(pairs, ab2, cd2), 2);
  store(hn::InterleaveUpper(pairs, ab2, cd2), 3);
}

void transpose_tiles(const void* source, std::int64_t rows, std::int64_t columns,
                     std::int64_t in_stride, void* target, std::int64_t out_stride) {
  const auto* const in = static_cast<const std::uint32_t*>(source);
  auto* const out = static_cast<std::uint32_t*>(target);
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const std::int64_t height = std::min(kTile, rows - r0), whole_height = height / 4 * 4;
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const std::int64_t width = std::min(kTile, columns - c0), whole_width = width / 4 * 4;
      const std::uint32_t* const from = in + r0 * in_stride + c0;
      std::uint32_t* const to = out + c0 * out_stride + r0;
      for (std::int64_t c = 0; c < whole_width; c += 4)
        for (std::int64_t r = 0; r < whole_height; r += 4)
          transpose_4x4(from + r * in_stride + c, in_stride, to + c * out_stride + r, out_stride);
      if (whole_width < width)
        transpose_rest(from + whole_width, height, width - whole_width, in_stride,
                       to + whole_width * out_stride, out_stride);
      if (whole_height < height)
        transpose_rest(from + whole_height * in_stride, height - whole_height, whole_width,
                       in_stride, to + whole_height, out_stride);
    }
  }
}

#else

void transpose_tiles(const void* in, std::int64_t rows, std::int64_t columns,
                     std::int64_t in_stride, void* out, std::int64_t out_stride) {
  transpose_rest(static_cast<const std::uint32_t*>(in), rows, columns, in_stride,
                 static_cast<std::uint32_t*>(out), out_stride);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {

HWY_EXPORT(transpose_tiles);

void transpose_words(const void* in, std::int64_t rows, std::int64_t columns,
                     std::int64_t in_stride, void* out, std::int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(transpose_tiles)(in, rows, columns, in_stride, out, out_stride);
}

}  // namespace numemu::simd
#endif
