// The fast path of quantize_codes: nearest even in vectors of doubles, equal in every bit.
#pragma once
#include <cstdint>

#include "formats/quantize.hpp"

namespace numemu {

/// Whether quantize_fast() knows this conversion: rne, at most 8 bits, no flushing, a moderate
/// bias.
bool has_fast_path(const Conversion&);

/// Whether quantize_fast() may take these elements: all finite, and none with a sign if the format
/// has none.
bool takes_fast_path(const Conversion&, const float* x, std::int64_t n);

/// As quantize_codes, for conversions and elements that both tests above accept.
FlagCounts quantize_fast(const Conversion&, const float* x, std::int64_t n, float scale,
                         std::uint8_t* codes);

/// What the vector loop over a floating format needs to know: nothing but numbers.
struct FloatPlan {
  double scale = 1;
  double first_binade = 1;  ///< 2^e of the lowest binade with a full significand
  double to_magic = 1;      ///< 2^(52 - M)
  double largest = 1;       ///< largest finite value
  double beyond = 1;        ///< the power of two above it: from here on everything overflows
  double smallest = 1;      ///< smallest positive value
  double tiny_below =
      1;  ///< smaller magnitudes round below the smallest normal number (unbounded exponents)
  int to_code = 52;    ///< 52 - M: from the exponent field of a double to the format's
  int sign_shift = 0;  ///< position of the sign bit
  std::uint64_t hidden =
      0;  ///< 2^M if field 0 is a normal binade ("gap": zero has a distant neighbour), else 0
  std::uint64_t zero_has_sign = 0;
  std::uint64_t over_positive = 0, over_negative = 0;  ///< codes of what overflows
};

/// The same for integers.
struct IntegerPlan {
  double scale = 1;
  double low = 0, high = 1;  ///< the range, -high..high or -high-1..high or 0..high
  std::uint64_t mask = 1;    ///< the bits of a code
};

/// The vector loops, dispatched at run time to the best instruction set (quantize_simd.cpp).
FlagCounts quantize_vectors(const FloatPlan&, const float* x, std::int64_t n, std::uint8_t* codes);
FlagCounts quantize_vectors(const IntegerPlan&, const float* x, std::int64_t n,
                            std::uint8_t* codes);
std::uint32_t largest_masked_bits(const float* x, std::int64_t n, std::uint32_t mask);

}  // namespace numemu
