// The fast Hadamard transform of many columns at once, in vectors.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// Each column of `from` becomes H diag(factors) column in `to`, H the Hadamard matrix of `rows`
/// positions, a power of two of at least 2: sums and differences of neighbours first, then of those
/// two apart, and so on. NaN are 0x7fc00000. `columns` is a multiple of 16, strides are those of
/// rows. `buffer` has room for rows x columns; the three may be one.
void butterflies(const float* from, std::int64_t from_stride, std::int64_t rows,
                 std::int64_t columns, const float* factors, float* to, std::int64_t to_stride,
                 float* buffer);

}  // namespace numemu::simd
