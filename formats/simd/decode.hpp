// Codes of at most 8 bits to float32 through a table, in vectors.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// y[i] = table[codes[i]] for i in [0, n); the table has 256 entries. `stream`: results bypass the
/// caches, y is aligned to a vector. Returns the largest code.
std::uint8_t decode_bytes(const float* table, const std::uint8_t* codes, std::int64_t n, float* y,
                          bool stream);

/// How many of the codes have low <= (code & mask) <= high, for a mask of the lower bits. Where
/// `flags` is given, flags[i] is `flag` for those and 0 for the others.
std::int64_t count_between(const std::uint8_t* codes, std::int64_t n, std::uint8_t mask,
                           std::uint8_t low, std::uint8_t high, std::uint8_t flag,
                           std::uint8_t* flags);

}  // namespace numemu::simd
