// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/channel_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "emu/net/ops/conv.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

bool multiplies(std::string_view kind) { return kind == "linear" || kind.starts_with("conv"); }

bool normalises(std::string_view kind) {
  return kind == "layer_norm" || kind == "rms_norm" || kind == "batch_norm";
}

/// f(x / s) = f(x) / s for every channel of the last axis; flattening repeats the channels.
bool passes(std::string_view kind) {
  constexpr std::array<std::string_view, 8> kKinds = {
      "relu",     "leaky_relu",   "dropout", "identity",
      "max_pool", "average_pool", "flatten", "global_average_pool"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

const net::Tensor& weight_of(const net::Node& node) {
  return std::as_const(*node.op).parameters()[0].value;
}

std::int64_t groups_of(const net::Node& node) {
  const auto* const conv = dynamic_cast<const net::Conv*>(node.op.get());
  return conv == nullptr ? 1 : conv->options().groups;
}

/// body(element of the weight, its input channel) of a consumer.
template <class Body>
void for_each_input(const net::Node& node, std::int64_t channels, const Body& body) {
  const net::Tensor& weight = weight_of(node);
  const std::int64_t rows = weight.dim(0), each = weight.size() / rows, in = weight.dim(-1),
                     groups = groups_of(node);
  for (std::int64_t i = 0; i < weight.size(); ++i)
    body(i, (i / each / (rows / groups) * in + i % in) % channels);
}

std::string describe(const net::Node& node) {
  return fmt::format("layer {} ({})", node.name, node.op->kind());
}

}  // namespace

ChannelLink channel_link(const net::Graph& graph, std::size_t producer) {
  const net::Node& first = graph.nodes[producer];
  const std::string_view kind = first.op->kind();
  if (!multiplies(kind) && !normalises(kind))
    throw Error(describe(first) + " has no weight or gain that scales its channels");
  ChannelLink link{producer, {}, weight_of(first).dim(0)};
  std::vector<bool> carries(graph.value_count());
  carries[graph.value_of(producer)] = true;
  for (std::size_t i = producer + 1; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const auto reads = [&](int value) { return carries[value]; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), reads)) continue;
    if (multiplies(node.op->kind())) {
      const std::int64_t in = weight_of(node).dim(-1) * groups_of(node);
      if (in % link.channels != 0)
        throw Error(fmt::format("{} has {} channels, {} reads {}", describe(first), link.channels,
                                describe(node), in));
      link.consumers.push_back(i);
    } else if (passes(node.op->kind())) {
      carries[graph.value_of(i)] = true;
    } else {
      throw Error(fmt::format("the channels of {} go to {}, through which their scales do not pass",
                              describe(first), describe(node)));
    }
  }
  if (carries.back() || link.consumers.empty())
    throw Error(fmt::format("the channels of {} go to the network's output", describe(first)));
  return link;
}

std::size_t channel_producer(const net::Graph& graph, std::size_t consumer) {
  const auto inputs = static_cast<int>(graph.inputs.size());
  std::size_t at = consumer;
  while (true) {
    const int value = graph.nodes[at].inputs.at(0);
    if (value < inputs) {
      throw Error(fmt::format("{} reads the network's input, which no layer can scale",
                              describe(graph.nodes[consumer])));
    }
    at = static_cast<std::size_t>(value - inputs);
    const net::Node& node = graph.nodes[at];
    if (multiplies(node.op->kind()) || normalises(node.op->kind())) return at;
    if (!passes(node.op->kind())) {
      throw Error(fmt::format("{} reads {}, through which scales do not pass",
                              describe(graph.nodes[consumer]), describe(node)));
    }
  }
}

void scale_channels(net::Graph& graph, const ChannelLink& link, const std::vector<double>& s) {
  const auto scaled = [](float x, double by) { return static_cast<float>(double{x} * by); };
  const std::span<net::Parameter> parameters = graph.nodes[link.producer].op->parameters();
  // Weight or gain, and bias; running statistics of a batch normalisation stay.
  for (std::size_t p = 0; p < std::min<std::size_t>(2, parameters.size()); ++p) {
    net::Tensor& x = parameters[p].value;
    const std::int64_t each = x.size() / link.channels;
    for (std::int64_t i = 0; i < x.size(); ++i) x.data[i] = scaled(x.data[i], 1 / s[i / each]);
  }
  for (const std::size_t consumer : link.consumers) {
    net::Node& node = graph.nodes[consumer];
    float* const w = node.op->parameters()[0].value.data.data();
    for_each_input(node, link.channels,
                   [&](std::int64_t i, std::int64_t c) { w[i] = scaled(w[i], s[c]); });
  }
}

std::vector<double> output_magnitudes(const net::Graph& graph, const ChannelLink& link) {
  const net::Tensor& weight = weight_of(graph.nodes[link.producer]);
  std::vector<double> largest(static_cast<std::size_t>(link.channels));
  const std::int64_t each = weight.size() / link.channels;
  for (std::int64_t i = 0; i < weight.size(); ++i)
    largest[i / each] = std::max(largest[i / each], std::abs(double{weight.data[i]}));
  return largest;
}

std::vector<double> input_magnitudes(const net::Graph& graph, const ChannelLink& link) {
  std::vector<double> largest(static_cast<std::size_t>(link.channels));
  for (const std::size_t consumer : link.consumers) {
    const net::Node& node = graph.nodes[consumer];
    const float* const w = weight_of(node).data.data();
    for_each_input(node, link.channels, [&](std::int64_t i, std::int64_t c) {
      largest[c] = std::max(largest[c], std::abs(double{w[i]}));
    });
  }
  return largest;
}

}  // namespace numemu::policies
