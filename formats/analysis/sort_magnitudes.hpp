// Sorts float32 magnitudes by the digits of their bits.
#pragma once
#include <cstddef>

namespace numemu {

/// x[0..n) ascending, in x or in `other`, an array as long: the one that is returned. No element is
/// negative or NaN: the bits of all others are in their order.
float* sort_magnitudes(float* x, float* other, std::size_t n);

}  // namespace numemu
