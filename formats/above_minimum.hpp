// The number of a code above a block's minimum, in float64 where that is exact.
#pragma once
#include <cstdint>

#include "formats/block_convert.hpp"

namespace numemu {

/// decode_in_block() for codes of at most 8 bits above a minimum, under a finite factor of at most
/// 24 bits, so that the product is exact; where the sum is, too, it is rounded once.
inline float above_minimum(const BlockFormat& format, const BlockScale& scale, std::uint64_t code,
                           double factor, double minimum) {
  const double product = static_cast<double>(code) * factor;
  const double sum = product + minimum, part = sum - product;
  const double lost = (product - (sum - part)) + (minimum - part);
  if (sum != 0 && lost == 0) return static_cast<float>(sum);
  return decode_in_block(format, scale, code);
}

}  // namespace numemu
