// Blocks of ggml's types to numbers.
#pragma once
#include <cstdint>

namespace numemu {

/// Writes the elements of one block of a type that is read (ggml_bytes()). False where a scale of
/// it is NaN or infinite.
bool decode_ggml_block(std::uint32_t type, const std::uint8_t* block, float* out);

}  // namespace numemu
