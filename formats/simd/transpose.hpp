// Matrices of 4-byte elements turned in vectors: rows become columns, between any two strides.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// out[c * out_stride + r] = in[r * in_stride + c] for r < rows and c < columns; strides count
/// elements of 4 bytes, of which only the bits are moved. The matrices do not overlap.
void transpose_words(const void* in, std::int64_t rows, std::int64_t columns,
                     std::int64_t in_stride, void* out, std::int64_t out_stride);

}  // namespace numemu::simd
