// Codes of 9 to 16 bits to float32, faster than by a table where a shift gives the value.
#pragma once
#include <cstdint>

#include "formats/format.hpp"

namespace numemu::policies {

/// y[i] = the float32 value of codes[i], for formats of 9 to 16 bits whose values float32 holds.
/// Uses threads.
void decode_halves(const Format&, const std::uint16_t* codes, std::int64_t n, float* y);

}  // namespace numemu::policies
