// Mean and variance of what each channel of a layer gives on the calibration samples: what bias
// correction and re-estimation compare between the tuned network and its reference.
#pragma once
#include <string>
#include <vector>

#include "policies/tune/base/tuning.hpp"

namespace numemu::policies {

/// A layer with a weight [channels, ...] and a bias [channels], whose results have the channels
/// last. The bias is its own, or a constant that a sum behind it adds: exporters write a linear
/// layer on more than two axes so.
struct BiasedLayer {
  std::string name;
  std::string weight, bias;  ///< names of the parameters
  std::string result;        ///< the node whose results contain the bias
};
/// In the order of forward.
std::vector<BiasedLayer> biased_layers(const net::Graph&);

/// Takes out the layers whose bias, or weight where `weights`, is one with another parameter
/// (emu/net/tied.hpp): by layer, with what it is.
std::vector<std::string> leave_out_shared(const net::Graph&, std::vector<BiasedLayer>&,
                                          bool weights);

/// Of each channel over samples and positions; the variance is that of the population.
struct ChannelStatistics {
  std::vector<double> mean, variance;
};
/// Of the results of a node before the next operator reads them, in inference under the numerics.
/// The network runs as far as that node. Sums are float64 in a fixed order.
ChannelStatistics channel_statistics(net::Graph&, const std::string& node, net::Numerics&,
                                     const Calibration&);

/// What the reference gives in float32, and what the network gives as the recipe and the steps so
/// far have it.
struct ChannelDrift {
  ChannelStatistics wanted, found;
};
ChannelDrift channel_drift(Tuning&, const BiasedLayer&);

}  // namespace numemu::policies
