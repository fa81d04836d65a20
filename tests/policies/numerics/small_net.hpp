// A network of one convolution and one linear layer.
#pragma once
#include <memory>

#include "emu/net/graph.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"

namespace numemu::policies::test {

/// conv (channels -> 8), relu, flatten, fc (-> classes) on images 4 x 4 x channels.
inline net::Graph small_net(std::int64_t channels, std::int64_t classes) {
  net::Graph graph;
  graph.name = "small";
  graph.inputs = {{"input", {4, 4, channels}}};
  net::Conv2dOptions options;
  options.in_channels = channels;
  options.out_channels = 8;
  options.kernel_height = options.kernel_width = 3;
  options.pad = 1;
  graph.add("conv", std::make_unique<net::Conv2d>(options), {0});
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  graph.add("flatten", std::make_unique<net::Flatten>());
  graph.add("fc", std::make_unique<net::Linear>(128, classes));
  net::initialize(graph, 0);
  return graph;
}

}  // namespace numemu::policies::test
