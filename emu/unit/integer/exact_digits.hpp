// Sums of digit products recombined exactly in float64, joined with C and rounded once to float32.
#pragma once
#include <cstdint>

#include "emu/unit/integer/block.hpp"

namespace numemu::unit {

/// Planes of kBlock * kBlock: plane s holds the sums of digit products of weight 256^s. Every
/// partial recombination is an integer below 2^53 in magnitude (the caller's proof).
struct DigitSums {
  const std::int32_t* planes = nullptr;
  int weights = 1;
  bool joins = false;        ///< 256 times one plane and another fit int32 together
  double* totals = nullptr;  ///< of earlier slices, or null
  double scale = 1;          ///< value of the integer 1, a power of two
};

/// totals += the recombined planes.
void fold_digit_sums(const DigitSums&);

/// d[i * stride + j] = (total * scale + c) rounded once to nearest even, for rows x lanes outputs
/// of the block; c may be null. Whether some c is -0. Under a FloatGuard.
bool round_digit_sums(const DigitSums&, std::int64_t rows, std::int64_t lanes, const float* c,
                      float* d, std::int64_t stride);

}  // namespace numemu::unit
