// The vector loops before the elements of blocks: their largest magnitudes, and their scales in the
// form that the element loops read.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// Elements of the widest vector: sizes of blocks are multiples of it (others are padded).
inline constexpr std::int64_t kBlockGrain = 16;

/// The largest bit pattern of |x| among the finite elements; 0 for none.
std::uint32_t largest_finite(const float* x, std::int64_t n);

/// The least and the largest finite element, 0 and 0 where there is none (a zero has any sign).
struct FiniteRange {
  float low = 0, high = 0;
  bool all = true;  ///< no element is NaN or infinite
};
FiniteRange finite_range(const float* x, std::int64_t n);

/// What is seen of blocks before their scales are chosen.
struct BlockSurvey {
  std::int64_t nonfinite = 0;  ///< blocks that hold NaN or an infinity
  std::int64_t zero = 0;       ///< blocks of nothing but zeros
};

/// bits[b] = the largest bit pattern of |x| in block b: NaN and infinities are at least 0x7f800000.
void block_maxima(const float* x, std::int64_t blocks, std::int64_t size, std::uint32_t* bits);
/// amax[b] = the number with these bits, 1 for blocks that are not finite (their results do not
/// count, and nothing about 1 is slow).
BlockSurvey survey_maxima(const std::uint32_t* bits, std::int64_t blocks, float* amax);

/// y[i] = x[i] / divisor as the host rounds; arrays with room for n rounded up to kBlockGrain.
void divide_all(const float* x, std::int64_t n, float divisor, float* y);

/// The arrays of the next two have room for blocks rounded up to kBlockGrain.
/// scale[b] = 2^(exponents[b] + shift) and its inverse, where that exponent lies in -127..highest;
/// elsewhere 1 and alone[b] = 1; also 1 for blocks of
/// zeros, whose elements are zeros under any scale. Returns whether some block is alone.
/// `low`: see BlockRun.
bool powers_of_two(const std::int32_t* exponents, const float* amax, std::int64_t blocks,
                   std::int32_t shift, std::int32_t highest, float* scale, float* inverse,
                   float* low, std::uint32_t* alone);
/// scale[b] + rest[b] = factors[b] * unit exactly, inverse[b] = 1 / scale[b], 0 for 0. Needs the
/// host's fused multiply-add.
void split_products(const float* factors, std::int64_t blocks, float unit, float* scale,
                    float* rest, float* inverse);

}  // namespace numemu::simd
