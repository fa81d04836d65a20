// The predictor as a small graph, and what its predictions do to a map.
#include "policies/zap/predictor.hpp"

#include <memory>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "formats/error.hpp"
#include "policies/zap/depthwise.hpp"

namespace numemu::policies {
namespace {

void require_map(const net::Shape& map) {
  if (map.size() == 3 && map[0] > 0 && map[1] > 0 && map[2] > 0) return;
  throw Error("zero prediction: expected a map [height, width, channels], got " +
              net::to_string(map));
}

net::Graph predictor_graph(const std::string& layer, const net::Shape& map) {
  const std::int64_t channels = map[2];
  const net::BatchNormOptions norm{.channels = channels};
  net::Graph graph;
  graph.name = layer + ".zap";
  graph.inputs = {{"visible", map}};
  graph.add(graph.name + ".conv1", std::make_unique<Depthwise3x3>(channels));
  graph.add(graph.name + ".bn1", std::make_unique<net::BatchNorm>(norm));
  graph.add(graph.name + ".relu", std::make_unique<net::Pointwise>("relu"));
  graph.add(graph.name + ".conv2", std::make_unique<Depthwise3x3>(channels));
  graph.add(graph.name + ".bn2", std::make_unique<net::BatchNorm>(norm));
  return graph;
}

}  // namespace

ZapPredictor::ZapPredictor(const std::string& layer, const net::Shape& map, int mask_type,
                           std::uint64_t seed) {
  require_map(map);
  mask_ = position_mask(mask_type, map[0], map[1]);
  graph_ = predictor_graph(layer, map);
  net::initialize(graph_, seed);
}

net::Tensor ZapPredictor::visible(const net::Tensor& x) const {
  const net::Shape& expected = map();
  if (x.shape.size() != 4 || !std::equal(expected.begin(), expected.end(), x.shape.begin() + 1)) {
    throw Error(graph_.name + ": expected maps [batch, then " + net::to_string(expected) +
                "], got " + net::to_string(x.shape));
  }
  net::Tensor y(x.shape);
  const std::int64_t channels = expected[2];
  for (std::int64_t p = 0; p < x.size() / channels; ++p) {
    if (mask_.computed[static_cast<std::size_t>(p % mask_.positions())] == 0) continue;
    std::copy_n(x.data.begin() + p * channels, channels, y.data.begin() + p * channels);
  }
  return y;
}

net::Tensor ZapPredictor::predict(const net::Tensor& x) const {
  net::Numerics float32;
  return net::forward(graph_, visible(x), float32);
}

void skip_zeros(const PositionMask& mask, const net::Tensor& z, float threshold, net::Tensor& x) {
  const std::int64_t channels = x.dim(-1);
  const float* const guess = z.data.data();
  float* const value = x.data.data();
  net::for_each_row(x.size() / channels, channels, [=, &mask](std::int64_t p) {
    if (mask.computed[static_cast<std::size_t>(p % mask.positions())] != 0) return;
#pragma omp simd
    for (std::int64_t i = p * channels; i < (p + 1) * channels; ++i)
      value[i] = guess[i] > threshold ? value[i] : 0;
  });
}

}  // namespace numemu::policies
