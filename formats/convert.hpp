// Arrays of codes from any format to any other, one rounding each: float32 to float8_e4m3fn is
// encoding, float8_e4m3fn to float32 is decoding.
#pragma once
#include <cstdint>

#include "formats/containers.hpp"
#include "formats/conversion.hpp"

namespace numemu {

/// out[i] = encode(decode(in[i])) for i in [0, n): `in` holds codes of `from`, `out` codes of
/// c.format, each in containers of container_bytes(), host byte order, aligned as such integers
/// are; they must not overlap unless they are the same array with containers of one size.
/// flags[i], if `flags` is given, receives the Flag bits of element i. `first` is the index of
/// element 0 in its tensor and selects the random bits. Codes with bits beyond the format's width
/// are refused with an Error that names the position. Uses OpenMP threads; the same bits for any
/// number of them.
FlagCounts convert_codes(const Conversion& c, const Format& from, const void* in, std::int64_t n,
                         void* out, std::uint8_t* flags = nullptr, std::int64_t first = 0);

/// How convert_codes() goes about `n` elements: a table of results, vector loops, or the reference,
/// which takes some 30 ns an element.
enum class ConversionPath : std::uint8_t { table, vectors, reference };
ConversionPath conversion_path(const Conversion&, const Format& from, std::int64_t n);

/// convert_codes() with one decode() and one encode() per element: the reference.
FlagCounts convert_codes_reference(const Conversion& c, const Format& from, const void* in,
                                   std::int64_t n, void* out, std::uint8_t* flags = nullptr,
                                   std::int64_t first = 0);

/// Every finite value of `narrow` is a finite value of `wide`.
bool exact_in(const Format& narrow, const Format& wide);

}  // namespace numemu
