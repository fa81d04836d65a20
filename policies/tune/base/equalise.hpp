// Ranges of weights made equal across layers (Nagel et al., ICCV 2019), and moved from activations
// to weights (SmoothQuant, Xiao et al., ICML 2023), through the channels between operators whose
// scales can be moved from one side to the other without changing the network.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/tune/base/tuning.hpp"

namespace numemu::policies {

/// What gives a tensor's channels and what multiplies them: a convolution, a linear layer, a
/// normalisation with a gain or the product with a constant for each channel (the gain of a
/// normalisation that is decomposed), then operators f with f(x / s) = f(x) / s for s > 0 (ReLU,
/// leaky ReLU, pooling, flattening, dropout) and sums with a constant for each channel, then
/// convolutions and linear layers alone.
struct ChannelLink {
  std::size_t producer = 0;  ///< a node; its parameters are gain or weight, then bias; of a product
                             ///< the constant's node has them
  std::vector<std::size_t> shifts;     ///< constants that are added to the channels
  std::vector<std::size_t> consumers;  ///< nodes in the order of the graph
  std::int64_t channels = 0;
  /// Of the values of attention, which heads mix: the channel that each column of the consumer
  /// reads.
  std::vector<std::int64_t> from = {};

  /// The channel that column i of a consumer's input is.
  std::int64_t channel_of(std::int64_t i) const {
    return from.empty() ? i % channels : from[static_cast<std::size_t>(i)];
  }
};

/// The link whose producer is that node. Throws Error naming the operator where something else
/// reads the channels, where the node has none that can be scaled, and where a parameter of theirs
/// is one with another (emu/net/tied.hpp).
ChannelLink channel_link(const net::Graph&, std::size_t producer);
/// The node that gives the channels which the node `consumer` reads, through the operators above.
/// Throws Error naming the operator that stands between, or the network's input.
std::size_t channel_producer(const net::Graph&, std::size_t consumer);

/// The producer's channels and the shifts divided by s, the consumers' weights multiplied by it: s
/// has one positive number per channel. Each product is rounded once; powers of two leave the
/// network's results as they were, bit for bit, where nothing underflows.
void scale_channels(net::Graph&, const ChannelLink&, const std::vector<double>& s);

/// The largest magnitude of the producer's weight per output channel, and over all consumers per
/// input channel.
std::vector<double> output_magnitudes(const net::Graph&, const ChannelLink&);
std::vector<double> input_magnitudes(const net::Graph&, const ChannelLink&);

/// Whose scales are rounded to powers of two: the network's float32 results stay bit for bit.
enum class ScaleSteps : bool { real, powers_of_two };

/// s, or the power of two that is nearest in ratio; 1 for what is no positive finite number.
double stepped_scale(double s, ScaleSteps);

/// s_i = sqrt(r1 r2) / r2 of channels with the ranges r1 before (the producer's weight) and r2
/// behind: both become sqrt(r1 r2). 1 where a range is 0.
std::vector<double> equalising_scales(const std::vector<double>& r1, const std::vector<double>& r2,
                                      ScaleSteps = ScaleSteps::real);
/// s_j = max|X_j|^strength / max|W_j|^(1 - strength), what the channels are divided by; 1 where
/// either is 0.
std::vector<double> smoothing_scales(const std::vector<double>& x, const std::vector<double>& w,
                                     double strength, ScaleSteps = ScaleSteps::real);

/// What was done to a pair of layers, or why nothing was.
struct ScaledLink {
  std::string producer, consumers;
  double least = 1, most = 1;  ///< of the scales, all rounds together
  std::string refused = {};    ///< not empty: the pair stays as it is
};

/// Both change several graphs of the same nodes alike; the weights of the first one decide.
///
/// Equalises every convolution and linear layer with those that read it, in the order of the graph,
/// round after round until no scale differs from 1 by more than 1 %, or `rounds` are done.
std::vector<ScaledLink> equalise_weights(std::span<net::Graph* const>, std::int64_t rounds,
                                         ScaleSteps = ScaleSteps::real);

/// Moves scales into the consumers of each normalisation, convolution or linear layer that the
/// convolutions and linear layers of the graph read. `magnitudes` are the largest |x| per channel
/// of the values that nodes read, empty for nodes that are not to be smoothed.
std::vector<ScaledLink> smooth_activations(std::span<net::Graph* const>,
                                           const std::vector<std::vector<double>>& magnitudes,
                                           double strength, ScaleSteps = ScaleSteps::real);

// What the steps share that move scales between layers and leave the network's function.

/// The option `scales`: real or powers_of_two.
Option scale_steps_option(std::string& scales);
ScaleSteps scale_steps(std::string_view scales);

/// Drops the ranges of all that such a step changed and calibrates again. Throws Error with every
/// reason where nothing could be moved; `step` is its name.
void forget_moved_ranges(Tuning&, std::string_view step, const std::vector<ScaledLink>&);

/// "2 of 3 links scaled by 0.2 to 6; as they were: layer b (linear) reads ..."
std::string summary_of(const std::vector<ScaledLink>&);

}  // namespace numemu::policies
