// Quantizes a tensor by blocks that run along its columns, panel by panel, without a transposed
// copy.
#pragma once
#include <cstdint>

#include "formats/scaling/quantize_blocks.hpp"

namespace numemu {

/// Quantizes x, `outer` matrices of length x across, in blocks along the length; y lies as x.
/// Values and counts are those of quantize_blocks() of the transposed matrices, [outer * across,
/// length]: random bits count elements in that order. Uses OpenMP threads; the same bits for any
/// number of them. Throws as quantize_blocks() does.
BlockCounts quantize_columns(const BlockQuantization&, std::int64_t outer, std::int64_t length,
                             std::int64_t across, const float* x, float* y);
/// quantize_columns() through transposed copies: the reference, and the way of what no vector loop
/// serves.
BlockCounts quantize_columns_reference(const BlockQuantization&, std::int64_t outer,
                                       std::int64_t length, std::int64_t across, const float* x,
                                       float* y);

/// out[c][r] = in[r][c] of each of `count` matrices of rows x columns. Uses threads.
void transpose(const float* in, std::int64_t count, std::int64_t rows, std::int64_t columns,
               float* out);

}  // namespace numemu
