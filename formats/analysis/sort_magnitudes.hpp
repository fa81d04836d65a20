// Sorts float32 magnitudes by the digits of their bits.
#pragma once
#include <vector>

namespace numemu {

/// Ascending. No element is negative or NaN: the bits of all others are in their order.
void sort_magnitudes(std::vector<float>& x);

}  // namespace numemu
