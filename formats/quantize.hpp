// Arrays of float32 to codes or values under one real scale: exact quotient, one rounding, flags
// counted.
#pragma once
#include <cstdint>

#include "formats/conversion.hpp"

namespace numemu {

/// codes[i] = encode(x[i] / scale) for i in [0, n); scale is finite and positive; formats of at
/// most 8 bits. `first` is the index of x[0] in its tensor (it selects the random bits).
/// Single-threaded, reentrant.
FlagCounts quantize_codes(const Conversion&, const float* x, std::int64_t n, float scale,
                          std::uint8_t* codes, std::int64_t first = 0);
/// Codes of formats of 9 to 16 bits.
FlagCounts quantize_codes(const Conversion&, const float* x, std::int64_t n, float scale,
                          std::uint16_t* codes, std::int64_t first = 0);
/// quantize_codes() with one encode() per element: its reference.
FlagCounts quantize_codes_reference(const Conversion&, const float* x, std::int64_t n, float scale,
                                    std::uint8_t* codes, std::int64_t first = 0);
FlagCounts quantize_codes_reference(const Conversion&, const float* x, std::int64_t n, float scale,
                                    std::uint16_t* codes, std::int64_t first = 0);

/// y[i] = decode(encode(x[i] / scale)) * scale, the product rounded once to float32, nearest even;
/// NaN is 0x7fc00000. Formats of any width whose values float32 holds, else throws Error. y may be
/// x; all else as quantize_codes.
FlagCounts quantize_values(const Conversion&, const float* x, std::int64_t n, float scale, float* y,
                           std::int64_t first = 0);
/// quantize_values() with one encode() and one decode() per element: its reference.
FlagCounts quantize_values_reference(const Conversion&, const float* x, std::int64_t n, float scale,
                                     float* y, std::int64_t first = 0);

/// The 256 float32 values of a format of at most 8 bits (codes beyond its width repeat code & mask;
/// NaN is 0x7fc00000).
const float* decode_table(const Format&);

}  // namespace numemu
