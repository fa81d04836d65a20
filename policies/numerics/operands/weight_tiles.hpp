// Weights in tiles: rectangles of outputs x inputs share a scale, so that a product of forward and
// one of backward read the same numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// A weight [outputs, ..., inputs] in tiles of `rows` x `edge` elements, tap by tap of a
/// convolution, those at the ends of outputs and inputs short. The tiles lie one after another:
/// [tap, band of outputs] lines of `height` rows each, padded with zero rows in the last band.
struct WeightTiles {
  std::int64_t outputs = 0, taps = 1, inputs = 0, edge = 1;
  std::int64_t height = 1;  ///< of a band: `rows`, or all outputs where those are fewer

  WeightTiles(const net::Shape& shape, std::int64_t side) : WeightTiles(shape, side, side) {}
  WeightTiles(const net::Shape&, std::int64_t rows, std::int64_t edge);
  std::int64_t bands() const { return (outputs + height - 1) / height; }
  std::int64_t lines() const { return taps * bands(); }
  std::int64_t line() const { return height * inputs; }
  /// Tiles, that is scales.
  std::int64_t count() const { return lines() * ((inputs + edge - 1) / edge); }
};

/// Quantizes a weight by the role's tiles; y receives float32 values in its order. The random bits
/// of an element are those of its index in the weight. Uses threads.
FlagCounts quantize_tiles(const RoleQuantizer&, const net::Tensor& weight, const RandomPiece&,
                          std::vector<float>& y);
/// quantize_tiles() to codes of bytes in the order of the weight, and the float32 scales of
/// [tap, band of outputs, band of inputs].
FlagCounts quantize_tiles(const RoleQuantizer&, const net::Tensor& weight, const RandomPiece&,
                          std::vector<std::uint8_t>& codes, std::vector<float>& scales);

}  // namespace numemu::policies
