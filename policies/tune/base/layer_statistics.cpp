#include "policies/tune/base/layer_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/tied.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/tune/base/tuned_layers.hpp"

namespace numemu::policies {
namespace {

/// Adds the mean and the sum of squared distances from it of `count` values to those of `before`.
void merge(double before, double count, double mean, double squares, double& all_mean,
           double& all_squares) {
  const double total = before + count, off = mean - all_mean;
  all_mean += off * count / total;
  all_squares += squares + off * off * before * count / total;
}

/// The constant that a sum adds and nothing else reads; null where the node is none.
const net::Parameter* added_bias(const net::Graph& graph, const net::Node& node) {
  if (node.op->kind() != "add" || node.inputs.size() != 2) return nullptr;
  for (const int value : node.inputs) {
    const auto at = value - static_cast<int>(graph.inputs.size());
    if (at < 0 || graph.nodes[static_cast<std::size_t>(at)].op->kind() != "constant") continue;
    const net::Parameter& constant =
        std::as_const(*graph.nodes[static_cast<std::size_t>(at)].op).parameters()[0];
    const auto reads = [&](const net::Node& reader) {
      return std::ranges::find(reader.inputs, value) != reader.inputs.end();
    };
    if (std::ranges::count_if(graph.nodes, reads) == 1) return &constant;
  }
  return nullptr;
}

/// What alone reads the layer and adds a number to each of its channels; null where nothing does.
const net::Node* sum_behind(const net::Graph& graph, const net::Node& layer,
                            std::int64_t channels) {
  const auto place = static_cast<std::size_t>(&layer - graph.nodes.data());
  const net::Node* sum = nullptr;
  for (const net::Node& node : graph.nodes) {
    if (std::ranges::find(node.inputs, graph.value_of(place)) == node.inputs.end()) continue;
    if (sum != nullptr) return nullptr;
    sum = &node;
  }
  if (sum == nullptr || std::ranges::any_of(graph.outputs, [&](const net::GraphOutput& output) {
        return output.value == graph.value_of(place);
      }))
    return nullptr;
  const net::Parameter* const bias = added_bias(graph, *sum);
  const bool fits =
      bias != nullptr && bias->value.size() == channels && bias->value.shape.back() == channels;
  return fits ? sum : nullptr;
}

}  // namespace

std::vector<BiasedLayer> biased_layers(const net::Graph& graph) {
  std::vector<BiasedLayer> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr || layer.name != layer.node->name) continue;
    const std::span<const net::Parameter> parameters = std::as_const(*layer.node->op).parameters();
    const std::string bias = layer.name + ".bias";
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const net::Parameter& p) { return p.name == bias; });
    if (&parameters[0].value != layer.weight) continue;
    if (found != parameters.end() && found->value.shape == net::Shape{layer.weight->dim(0)})
      layers.push_back({layer.name, parameters[0].name, bias, layer.name});
    if (parameters.size() > 1) continue;
    if (const net::Node* const sum = sum_behind(graph, *layer.node, layer.weight->dim(0)))
      layers.push_back({layer.name, parameters[0].name, added_bias(graph, *sum)->name, sum->name});
  }
  return layers;
}

std::vector<std::string> leave_out_shared(const net::Graph& graph, std::vector<BiasedLayer>& layers,
                                          bool weights) {
  std::vector<std::string> shared;
  const std::vector<std::vector<std::string>> groups = net::tied_groups(graph);
  std::erase_if(layers, [&](const BiasedLayer& layer) {
    for (const std::vector<std::string>& names : groups) {
      const auto has = [&](const std::string& name) {
        return std::ranges::find(names, name) != names.end();
      };
      if (!has(layer.bias) && !(weights && has(layer.weight))) continue;
      shared.push_back(fmt::format("{} ({} is also {})", layer.name, names[0], names[1]));
      return true;
    }
    return false;
  });
  return shared;
}

ChannelStatistics channel_statistics(net::Graph& graph, const std::string& node,
                                     net::Numerics& numerics, const Calibration& calibration) {
  const net::PartFromInputs part = net::part_from_inputs(graph, node);
  ChannelStatistics statistics;
  double before = 0;
  calibration.for_each([&](std::int64_t first, std::vector<net::Tensor> batch) {
    const CalibrationStep step(first, batch.at(0).dim(0));
    numerics.begin_step(step);
    const net::Tensor y = net::forward(part.graph, part.read(std::move(batch)), numerics, step);
    numerics.end_step(step);
    const std::int64_t channels = y.dim(-1), n = y.size() / channels;
    statistics.mean.resize(static_cast<std::size_t>(channels));
    statistics.variance.resize(static_cast<std::size_t>(channels));
#pragma omp parallel for schedule(static)
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = [&](std::int64_t i) { return double{y.data[i * channels + c]}; };
      const double mean = pairwise_sum(n, at) / static_cast<double>(n);
      const double squares =
          pairwise_sum(n, [&](std::int64_t i) { return (at(i) - mean) * (at(i) - mean); });
      merge(before, static_cast<double>(n), mean, squares, statistics.mean[c],
            statistics.variance[c]);
    }
    before += static_cast<double>(n);
  });
  for (double& variance : statistics.variance) variance /= before;
  return statistics;
}

ChannelDrift channel_drift(Tuning& tuning, const BiasedLayer& layer) {
  net::Numerics float32;
  ChannelStatistics wanted =
      channel_statistics(tuning.reference, layer.result, float32, tuning.calibration);
  const auto numerics = step_numerics(tuning);
  return {std::move(wanted),
          channel_statistics(tuning.graph, layer.result, *numerics, tuning.calibration)};
}

}  // namespace numemu::policies
