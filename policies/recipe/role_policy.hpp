// The quantization of one role of a recipe: encoding, rounding, overflow, scale, granularity.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/blocks/block_format.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::policies {

/// Which elements share a scale. channel: per index of axis 0 of a weight. row: per row of the
/// operand (a token, a sample). block: `block` neighbours along the reduction axis. tile: squares
/// of `block` outputs x `block` inputs of a weight, or of the rows and columns of a block format
/// of tiles.
enum class Granularity : std::uint8_t { tensor, channel, row, block, tile };

/// Where blocks run. channel: along the channels of the source tensor, inside one tap of a
/// convolution, quantized once before the gather. reduction: along the flattened depth of the
/// gathered operand, as a plain GEMM kernel would.
enum class BlockAxis : std::uint8_t { channel, reduction };

/// What the gradient of a quantized tensor is.
enum class StraightThrough : std::uint8_t {
  identity,  ///< as if it had not been quantized
  clipped,   ///< zero where the element saturated
};

/// One scale for a tensor: an element is (code - zero_point) scale.
struct TensorScale {
  float scale = 1;
  std::int32_t zero_point = 0;
  friend bool operator==(const TensorScale&, const TensorScale&) = default;
};
/// Scales that `ranges` of a recipe or a policy fix: one for the tensor, or one per channel.
using FixedScales = std::vector<TensorScale>;

/// A role that is quantized. A role that is absent stays float32.
struct RolePolicy {
  const Format* format = nullptr;      ///< of the elements
  const BlockFormat* block = nullptr;  ///< null unless granularity is block or tile
  Rounding rounding;
  Overflow overflow = Overflow::saturate;
  std::string scale;                 ///< name of a scale rule; empty where scales are fixed
  std::optional<FixedScales> fixed;  ///< in the place of what a rule chooses
  /// 0: the scale is that of the current tensor (or calibrated). N: the rule is applied to the
  /// largest magnitude of the last N steps ("delayed(N)" in JSON), 1 in the first step.
  std::int64_t history = 0;
  Granularity granularity = Granularity::tensor;
  BlockAxis axis = BlockAxis::channel;
  StraightThrough straight_through = StraightThrough::identity;
  /// An element is (code - z) scale, with the integer z chosen beside a static scale.
  bool zero_point = false;

  /// Outputs of a tile; its inputs are block->size.
  std::int64_t tile_rows() const { return block->span == Span::tile ? block->rows : block->size; }
  void fix(FixedScales scales) {
    scale.clear();
    fixed = std::move(scales);
  }
  /// The one of the tensor; none where a rule chooses, and of channels.
  std::optional<TensorScale> fixed_scale() const {
    if (!fixed || fixed->size() != 1) return std::nullopt;
    return fixed->front();
  }
  /// Whether scales are kept beside the codes: fixed ones, and those of most rules.
  bool stores_scale() const;
  /// "float8_e4m3fn rne saturate absmax/tensor"
  std::string describe() const;
};

}  // namespace numemu::policies
