// The vector loops over the elements of blocks under their scales. Blocks are contiguous, all of
// one size, a multiple of kBlockGrain.
#pragma once
#include <cstdint>

#include "formats/simd/block_scales.hpp"
#include "formats/simd/plan.hpp"

namespace numemu::simd {

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
  /// Powers of two: magnitudes below are taken for this one, which is nothing beside the scale; the
  /// host is slow where factors or products are subnormal numbers. 0 where these matter.
  const float* low = nullptr;
  float* values = nullptr;        ///< y = element * scale, rounded to nearest even
  std::uint8_t* codes = nullptr;  ///< elements of at most 8 bits
  std::uint8_t* flags = nullptr;
  const std::uint32_t* random = nullptr;  ///< one word per element
  bool stream = false;  ///< values bypass the caches; they are aligned to a vector
  /// Not 0: x comes from memory, and loops ask for its elements so much further on.
  std::int64_t ask_ahead = 0;
};

/// Elements under power-of-two scales. The plan is that of the element format with overflow
/// saturate and a rounding other than rodd. What blocks with NaN or infinities leave is undefined.
void convert_powers(const Plan&, const BlockRun&);

/// Whether convert_quotients() can run here: it needs the host's fused multiply-add.
bool has_quotients();
/// Elements under any scales by their exact quotients, nearest even, saturating. The plan's format
/// has a sign and at least one mantissa bit; scales lie within 2^-90..2^120.
void convert_quotients(const Plan&, const BlockRun&);
/// Exact quotients of n numbers x >= 0 under one divisor: y[i] = the value of the format nearest to
/// x[i] / (divisor + divisor_rest).
void round_quotients(const Plan&, const float* x, std::int64_t n, float divisor, float divisor_rest,
                     float* y);

}  // namespace numemu::simd
