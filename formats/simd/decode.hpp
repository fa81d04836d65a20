// Codes of at most 8 bits to float32 through a table, in vectors.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// y[i] = table[codes[i]] for i in [0, n); the table has 256 entries. `stream`: results bypass the
/// caches, y is aligned to a vector. Returns the largest code.
std::uint8_t decode_bytes(const float* table, const std::uint8_t* codes, std::int64_t n, float* y,
                          bool stream);

}  // namespace numemu::simd
