// Philox4x32-10 in vectors: the random bits of consecutive elements, as RandomSource gives them.
#pragma once
#include <cstdint>

#include "formats/random.hpp"

namespace numemu::simd {

/// words[i] = source.bits(first + i, bits) for i in [0, n); bits 1..32.
void fill_random(const RandomSource& source, int bits, std::uint64_t first, std::int64_t n,
                 std::uint32_t* words);

/// bytes[i] = source.bits(first + i, 8): the bits of up to 8 are the top bits of these.
void fill_random_bytes(const RandomSource& source, std::uint64_t first, std::int64_t n,
                       std::uint8_t* bytes);

}  // namespace numemu::simd
