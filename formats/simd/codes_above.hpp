// The vector loop of codes above a minimum: quotients in float64, left open where their error could
// decide.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// round((x - minimum) / factor) for codes 0..high of at most 8 bits, to nearest where random_bits
/// is 0; else the quotient is first rounded to nearest in steps of 2^-random_bits, at most 24, the
/// random bits are added and the sum is cut.
struct CodesAbove {
  double minimum = 0, factor = 1;
  int high = 1, random_bits = 0;
};

/// What a run of elements has become.
struct CodesAboveCounts {
  std::int64_t inexact = 0, open = 0;
};

/// codes[i] of x[i] for i in [0, n), and open[i] = 1 (else 0) where another way has to find the
/// code: near a boundary, at a code, and outside the range. Those are not counted as inexact.
/// `random` holds one word per element, its low random_bits. The host rounds to nearest.
CodesAboveCounts codes_above(const CodesAbove&, const float* x, std::int64_t n,
                             const std::uint32_t* random, std::uint8_t* codes, std::uint8_t* open);

}  // namespace numemu::simd
