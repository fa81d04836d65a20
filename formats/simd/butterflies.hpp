// The fast Hadamard transform of many columns at once, in vectors.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// Each column of x [rows, columns] becomes H diag(factors) column, H the Hadamard matrix of `rows`
/// positions, a power of two of at least 2: sums and differences of neighbours first, then of those
/// two apart, and so on. NaN are 0x7fc00000. `columns` is a multiple of 16.
void butterflies(float* x, std::int64_t rows, std::int64_t columns, const float* factors);

}  // namespace numemu::simd
