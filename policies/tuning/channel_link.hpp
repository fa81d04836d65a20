// The channels between operators whose scales can be moved from one side to the other without
// changing the network.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// What gives a tensor's channels and what multiplies them: a convolution, a linear layer or a
/// normalisation with a gain, then operators f with f(x / s) = f(x) / s for s > 0 (ReLU, leaky
/// ReLU, pooling, flattening, dropout), then convolutions and linear layers alone.
struct ChannelLink {
  std::size_t producer = 0;            ///< a node; its parameters are gain or weight, then bias
  std::vector<std::size_t> consumers;  ///< nodes in the order of the graph
  std::int64_t channels = 0;
};

/// The link whose producer is that node. Throws Error naming the operator where something else
/// reads the channels, or where the node has none that can be scaled.
ChannelLink channel_link(const net::Graph&, std::size_t producer);
/// The node that gives the channels which the node `consumer` reads, through the operators above.
/// Throws Error naming the operator that stands between, or the network's input.
std::size_t channel_producer(const net::Graph&, std::size_t consumer);

/// The producer's channels divided by s, the consumers' weights multiplied by it: s has one
/// positive number per channel. Each product is rounded once; powers of two leave the network's
/// results as they were, bit for bit, where nothing underflows.
void scale_channels(net::Graph&, const ChannelLink&, const std::vector<double>& s);

/// The largest magnitude of the producer's weight per output channel, and over all consumers per
/// input channel.
std::vector<double> output_magnitudes(const net::Graph&, const ChannelLink&);
std::vector<double> input_magnitudes(const net::Graph&, const ChannelLink&);

}  // namespace numemu::policies
