// Column sums of a matrix over the fixed pairwise tree in float64: bias gradients.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::net {

/// sums[c] = pairwise_sum(rows, x[r * columns + c]) of formats/portable/pairwise.hpp, bit for bit,
/// over OpenMP threads.
std::vector<double> column_sums(const float* x, std::int64_t rows, std::int64_t columns);

}  // namespace numemu::net
