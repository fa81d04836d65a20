#include "policies/recipe/weight_tiles.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::policies {
namespace {

/// move(offset in the weight, offset in the tiles, neighbours) for every row of every tile.
template <class Move>
void for_each_run(const WeightTiles& t, const Move& move) {
  net::for_each_row(t.lines(), t.line(), [&](std::int64_t line) {
    const std::int64_t tap = line / t.bands(), first = line % t.bands() * t.edge;
    const std::int64_t rows = std::min(t.edge, t.outputs - first);
    for (std::int64_t column = 0; column < t.inputs; column += t.edge) {
      const std::int64_t width = std::min(t.edge, t.inputs - column);
      for (std::int64_t r = 0; r < rows; ++r)
        move(((first + r) * t.taps + tap) * t.inputs + column,
             line * t.line() + column * t.edge + r * width, width);
    }
  });
}

}  // namespace

WeightTiles::WeightTiles(const net::Shape& shape, std::int64_t size)
    : outputs(shape.empty() ? 1 : shape.front()),
      inputs(shape.empty() ? 1 : shape.back()),
      edge(size) {
  const std::int64_t plane = outputs * inputs;
  if (shape.size() < 2) outputs = 1;
  taps = plane == 0 ? 0 : net::element_count(shape) / (outputs * inputs);
}

namespace {

/// quantize(layout, x in tiles) fills `tiles`, whose elements go to `out` in the order of the
/// weight.
template <class Element, class Quantize>
FlagCounts through_tiles(const RoleQuantizer& quantizer, const net::Tensor& weight,
                         std::vector<Element>& tiles, std::vector<Element>& out,
                         const Quantize& quantize) {
  const WeightTiles t(weight.shape, quantizer.policy().block->size);
  thread_local std::vector<float> x_tiles;
  x_tiles.assign(static_cast<std::size_t>(t.lines() * t.line()), 0.0f);
  tiles.resize(x_tiles.size());
  out.resize(weight.data.size());
  const float* const x = weight.data.data();
  float* const in = x_tiles.data();
  for_each_run(t, [=](std::int64_t from, std::int64_t to, std::int64_t n) {
    std::copy_n(x + from, n, in + to);
  });
  FlagCounts flags =
      quantize(block_layout(quantizer.block_format(), {t.lines(), t.line()}, 1), in).elements;
  flags.elements = weight.size();
  const Element* const from = tiles.data();
  Element* const to = out.data();
  for_each_run(t, [=](std::int64_t offset, std::int64_t in_tiles, std::int64_t n) {
    std::copy_n(from + in_tiles, n, to + offset);
  });
  return flags;
}

}  // namespace

FlagCounts quantize_tiles(const RoleQuantizer& quantizer, const net::Tensor& weight,
                          const RandomPiece& random, std::vector<float>& y) {
  thread_local std::vector<float> tiles;
  return through_tiles(quantizer, weight, tiles, y, [&](const BlockLayout& layout, const float* x) {
    return quantizer.quantize(layout, x, random, {}, tiles.data());
  });
}

FlagCounts quantize_tiles(const RoleQuantizer& quantizer, const net::Tensor& weight,
                          const RandomPiece& random, std::vector<std::uint8_t>& codes,
                          std::vector<float>& scales) {
  std::vector<std::uint8_t> tiles;
  return through_tiles(
      quantizer, weight, tiles, codes, [&](const BlockLayout& layout, const float* x) {
        scales.resize(static_cast<std::size_t>(layout.blocks));
        return quantizer.quantize(layout, x, random,
                                  {.codes = tiles.data(), .scales = scales.data()}, nullptr);
      });
}

}  // namespace numemu::policies
