#include "policies/numerics/operands/weight_tiles.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "formats/simd/philox.hpp"

namespace numemu::policies {
namespace {

/// move(offset in the weight, offset in the tiles, neighbours) for every row of every tile.
template <class Move>
void for_each_run(const WeightTiles& t, const Move& move) {
  net::for_each_row(t.lines(), t.line(), [&](std::int64_t line) {
    const std::int64_t tap = line / t.bands(), first = line % t.bands() * t.height;
    const std::int64_t rows = std::min(t.height, t.outputs - first);
    for (std::int64_t column = 0; column < t.inputs; column += t.edge) {
      const std::int64_t width = std::min(t.edge, t.inputs - column);
      for (std::int64_t r = 0; r < rows; ++r)
        move(((first + r) * t.taps + tap) * t.inputs + column,
             line * t.line() + column * t.height + r * width, width);
    }
  });
}

}  // namespace

WeightTiles::WeightTiles(const net::Shape& shape, std::int64_t rows, std::int64_t size)
    : outputs(shape.empty() ? 1 : shape.front()),
      inputs(shape.empty() ? 1 : shape.back()),
      edge(size) {
  const std::int64_t plane = outputs * inputs;
  if (shape.size() < 2) outputs = 1;
  height = std::clamp<std::int64_t>(outputs, 1, rows);
  taps = plane == 0 ? 0 : net::element_count(shape) / (outputs * inputs);
}

namespace {

/// Fills `tiles` with what quantize(format, layout, x in tiles, random words) makes, and moves its
/// elements to `out` in the order of the weight.
template <class Element, class Quantize>
FlagCounts through_tiles(const RoleQuantizer& quantizer, const net::Tensor& weight,
                         const RandomPiece& random, std::vector<Element>& tiles,
                         std::vector<Element>& out, const Quantize& quantize) {
  const RolePolicy& policy = quantizer.policy();
  const WeightTiles t(weight.shape, policy.tile_rows(), policy.block->size);
  BlockFormat format = quantizer.block_format();
  format.size = t.height * t.edge;
  thread_local std::vector<float> x_tiles;
  thread_local std::vector<std::uint32_t> words;
  x_tiles.assign(static_cast<std::size_t>(t.lines() * t.line()), 0.0f);
  words.assign(quantizer.stochastic() ? x_tiles.size() : 0, 0);
  tiles.resize(x_tiles.size());
  out.resize(weight.data.size());
  const float* const x = weight.data.data();
  float* const in = x_tiles.data();
  std::uint32_t* const bits = words.empty() ? nullptr : words.data();
  for_each_run(t, [&, in, bits](std::int64_t from, std::int64_t to, std::int64_t n) {
    std::copy_n(x + from, n, in + to);
    if (bits == nullptr) return;
    simd::fill_random(random.source, quantizer.policy().rounding.random_bits,
                      static_cast<std::uint64_t>(random.first + from), n, bits + to);
  });
  FlagCounts flags =
      quantize(format, block_layout(format, {t.lines(), t.line()}, 1), in, bits).elements;
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
  return through_tiles(quantizer, weight, random, tiles, y,
                       [&](const BlockFormat& format, const BlockLayout& layout, const float* x,
                           const std::uint32_t* words) {
                         return quantizer.quantize(format, layout, x, words, {}, tiles.data());
                       });
}

FlagCounts quantize_tiles(const RoleQuantizer& quantizer, const net::Tensor& weight,
                          const RandomPiece& random, std::vector<std::uint8_t>& codes,
                          std::vector<float>& scales) {
  std::vector<std::uint8_t> tiles;
  return through_tiles(quantizer, weight, random, tiles, codes,
                       [&](const BlockFormat& format, const BlockLayout& layout, const float* x,
                           const std::uint32_t* words) {
                         scales.resize(static_cast<std::size_t>(layout.blocks));
                         return quantizer.quantize(format, layout, x, words,
                                                   {.codes = tiles.data(), .scales = scales.data()},
                                                   nullptr);
                       });
}

}  // namespace numemu::policies
