// The inner loop of X^T X and Y^T X, by vectors.
#pragma once
#include <cstdint>

namespace numemu::policies {

/// sums[j] += factors[r] x[places[r]][j] for j in [0, n), r from 0 to count - 1 in order, x
/// row-major with `width` numbers in a row. Products of two float32 are exact in float64, so that
/// fused and separate additions give the same bits.
void add_scaled_rows(const float* x, std::int64_t width, const std::int32_t* places,
                     const float* factors, std::int64_t count, std::int64_t n, double* sums);

}  // namespace numemu::policies
