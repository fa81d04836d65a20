// The vector loops of block formats: largest magnitudes, and elements under the scales of their
// blocks. Blocks are contiguous, all of one size, a multiple of kBlockGrain.
#pragma once
#include <cstdint>

#include "formats/simd/plan.hpp"

namespace numemu::simd {

/// Elements of the widest vector: sizes of blocks are multiples of it (others are padded).
inline constexpr std::int64_t kBlockGrain = 16;

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

/// The arrays of the next two have room for blocks rounded up to kBlockGrain.
/// scale[b] = 2^(exponents[b] + shift) and its inverse, where that exponent lies in -127..highest;
/// elsewhere 1 and alone[b] = 1; also 1 for blocks of
/// zeros, whose elements are zeros under any scale. Returns whether some block is alone.
/// `multiply`: see BlockRun.
bool powers_of_two(const std::int32_t* exponents, const float* amax, std::int64_t blocks,
                   std::int32_t shift, std::int32_t highest, float* scale, float* inverse,
                   std::uint32_t* multiply, std::uint32_t* alone);
/// scale[b] + rest[b] = factors[b] * unit exactly, inverse[b] = 1 / scale[b], 0 for 0. Needs the
/// host's fused multiply-add.
void split_products(const float* factors, std::int64_t blocks, float unit, float* scale,
                    float* rest, float* inverse);

/// Where a loop over blocks reads and writes. Exactly one of values and codes is given; flags may
/// be absent. The host rounds as the plan says.
struct BlockRun {
  const float* x = nullptr;
  std::int64_t blocks = 0, size = 0;
  /// The exact scale of a block is scale + scale_rest, the rest at most half an ulp of the scale
  /// (powers of two have none).
  const float* scale = nullptr;
  const float* scale_rest = nullptr;
  /// About 1 / scale; exactly that for powers of two; 0 for blocks of zeros.
  const float* inverse = nullptr;
  /// Powers of two: which bits of an element's magnitude say that it is worth a multiplication.
  /// Others are left as they are: subnormal numbers, which the host multiplies slowly and which are
  /// nothing beside the elements of any block but the smallest.
  const std::uint32_t* multiply = nullptr;
  float* values = nullptr;        ///< y = element * scale, rounded to nearest even
  std::uint8_t* codes = nullptr;  ///< elements of at most 8 bits
  std::uint8_t* flags = nullptr;
  const std::uint32_t* random = nullptr;  ///< one word per element
  bool stream = false;  ///< values bypass the caches; they are aligned to a vector
};

/// Elements under power-of-two scales. The plan is that of the element format with overflow
/// saturate. What blocks with NaN or infinities leave is undefined.
void convert_powers(const Plan&, const BlockRun&);

/// Whether convert_quotients() can run here: it needs the host's fused multiply-add.
bool has_quotients();
/// Elements under any scales by their exact quotients, nearest even, saturating. The plan's format
/// has a sign and at least one mantissa bit; scales lie within 2^-90..2^120.
void convert_quotients(const Plan&, const BlockRun&);
/// The same for n numbers x >= 0 under one divisor: y[i] = the value of the format nearest to
/// x[i] / (divisor + divisor_rest).
void round_quotients(const Plan&, const float* x, std::int64_t n, float divisor, float divisor_rest,
                     float* y);

}  // namespace numemu::simd
