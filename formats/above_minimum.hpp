// The number of a code above a block's minimum, in float64 where that is exact.
#pragma once
#include <cstdint>

#include "formats/blocks/block_convert.hpp"

namespace numemu {

/// Whether above_minimum() serves the elements: codes of at most 8 bits that are the numbers.
inline bool counts_above_minimum(const BlockFormat& f) {
  return f.affine == Affine::min && f.element->bits <= 8 && !f.element->is_signed;
}

/// decode_in_block() for codes above a minimum that are their own numbers: those of
/// counts_above_minimum(), and of signed elements those without the sign bit. Under a finite factor
/// of at most 24 bits, so that the product is exact; where the sum is, too, it is rounded once.
inline float above_minimum(const BlockFormat& format, const BlockScale& scale, std::uint64_t code,
                           double factor, double minimum) {
  const double product = static_cast<double>(code) * factor;
  const double sum = product + minimum, part = sum - product;
  const double lost = (product - (sum - part)) + (minimum - part);
  if (lost == 0) return static_cast<float>(sum);
  return decode_in_block(format, scale, code);
}

}  // namespace numemu
