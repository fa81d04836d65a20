// Quantizes a tensor by blocks: scale rule, layout and conversion together.
#pragma once
#include <cstdint>
#include <optional>

#include "formats/blocks/block_convert.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/conversion.hpp"
#include "formats/scaling/scale_rule.hpp"

namespace numemu {

/// What a block with NaN or infinite elements becomes.
enum class Nonfinite : std::uint8_t {
  propagate,  ///< a NaN block: NaN scale, elements 0
  ignore,     ///< scaled by its finite elements; each element is converted for itself
};

struct BlockQuantization {
  const BlockFormat* format = nullptr;
  const ScaleRule* rule = nullptr;  ///< one that serves() the format
  /// Rounding, overflow, random bits (by the index in the tensor) and symmetric use of integers;
  /// its format is taken from the block format.
  Conversion element = {};
  /// Of real scales to the scale format. Formats with a tensor scale always round to nearest even.
  RoundingMode scale_rounding = RoundingMode::rup;
  Nonfinite nonfinite = Nonfinite::propagate;
  bool use_tensor_scale = true;  ///< false: the tensor scale is 1
  /// Where given, in place of what the rule chooses: the scales as BlockArrays has them, which
  /// check_scales() accepts, and the tensor scale.
  const void* scales = nullptr;
  std::optional<float> tensor_scale = {};
  bool count_flags = true;  ///< false: BlockCounts::elements has the number of elements only
};

/// Counts of elements and blocks.
struct BlockCounts {
  FlagCounts elements = {};
  std::int64_t blocks = 0;
  std::int64_t zero_blocks = 0;  ///< nothing but zeros
  std::int64_t nan_blocks = 0;
  float tensor_scale = 1;

  BlockCounts& operator+=(const BlockCounts&);
  friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};

/// Quantizes x (layout.elements() numbers, C order) into the arrays that are given; y is their
/// value, decode_in_block() of each, and may be null; y may not be x. Throws Error where a block is
/// to be NaN and the scale format has none. Uses OpenMP threads; the same bits for any number of
/// them.
BlockCounts quantize_blocks(const BlockQuantization&, const BlockLayout&, const float* x,
                            const BlockArrays&, float* y);
/// quantize_blocks() block after block in one thread: the reference.
BlockCounts quantize_blocks_reference(const BlockQuantization&, const BlockLayout&, const float* x,
                                      const BlockArrays&, float* y);

/// The tensor scale: RNE_f32(amax / (largest element * largest scale)), amax over the finite
/// elements; 1 if that is 0, at least 2^-126. Beside powers of two, which need no range, it is
/// RNE_f32(amax / largest element), and their rule sees RNE_f32(x / tensor scale) in place of x. 1
/// for formats without one and where it is not used.
float tensor_scale_of(const BlockQuantization&, const float* x, std::int64_t n);

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
