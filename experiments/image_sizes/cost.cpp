#include "experiments/image_sizes/cost.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/train/image_sizes.hpp"

namespace numemu::experiments::image_sizes {
namespace {

/// Places of a feature map, [1, height, width, channels], or 1 of a row.
double places(const net::Shape& shape) {
  return static_cast<double>(net::element_count(shape)) / static_cast<double>(shape.back());
}

double rows(const net::PlannedStep& step) {
  return static_cast<double>(step.samples * step.copies);
}

/// Samples and copies at `size` over those at the size of the data set.
double more_rows(const net::TrainOptions& options, std::int64_t own, std::int64_t size) {
  return rows(net::sized_step(options, own, size)) / rows(net::sized_step(options, own, own));
}

}  // namespace

net::Graph& at_size(net::Graph& graph, std::int64_t size) {
  net::Shape& shape = graph.inputs.at(0).shape;
  shape.at(0) = shape.at(1) = size;
  return graph;
}

double sample_cost(const net::Graph& graph, std::int64_t size) {
  const net::Shape input{1, size, size, graph.inputs.at(0).shape.back()};
  const std::vector<net::Shape> shapes = net::value_shapes(graph, std::span(&input, 1));
  double cost = 0;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto node = static_cast<std::size_t>(
        std::ranges::find(graph.nodes, layer.node->name, &net::Node::name) - graph.nodes.begin());
    const int read = layer.node->inputs.front();
    const bool first = read < std::ssize(graph.inputs);
    cost += (2 * places(shapes[graph.value_of(node)]) + (first ? 0 : places(shapes[read]))) *
            static_cast<double>(layer.weight->size());
  }
  return cost;
}

double training_cost(const net::Graph& graph, const net::Dataset& data,
                     const net::TrainOptions& options) {
  std::map<std::int64_t, double> of_sample;
  double cost = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const net::PlannedStep& step : net::epoch_steps(options, data, epoch)) {
      const std::int64_t size = step.image == 0 ? data.input_shape()[0] : step.image;
      if (!of_sample.contains(size)) of_sample[size] = sample_cost(graph, size);
      cost += rows(step) * of_sample[size];
    }
  }
  return cost;
}

double area_cost(const net::TrainOptions& options, std::int64_t own, std::int64_t size) {
  return more_rows(options, own, size) * static_cast<double>(size * size) /
         static_cast<double>(own * own);
}

double step_cost(const net::Graph& graph, const net::TrainOptions& options, std::int64_t own,
                 std::int64_t size) {
  return more_rows(options, own, size) * sample_cost(graph, size) / sample_cost(graph, own);
}

}  // namespace numemu::experiments::image_sizes
