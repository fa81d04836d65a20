// The places in a network where zeros can be predicted: ReLUs whose maps come from a convolution.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// A ReLU that can have a predictor.
struct ZapSite {
  std::string layer;                      ///< the ReLU's node
  net::Shape map;                         ///< height, width, channels of its result
  std::vector<std::string> convolutions;  ///< that produce its input
  std::int64_t depth = 0;  ///< multiply-adds of these convolutions per activation, all together

  std::int64_t activations() const { return map[0] * map[1] * map[2]; }
  std::int64_t macs() const { return activations() * depth; }  ///< per sample
};

/// Every ReLU of a graph with one image input whose value comes from convolutions through batch
/// normalisation and additions alone (so the one after a residual addition counts, with the
/// convolution before it), in order of forward. Nothing else may read what lies between. Without
/// `first` those fed by a convolution of the network's input are left out, as in the paper.
std::vector<ZapSite> zap_sites(const net::Graph&, bool first);

/// Multiply-adds of all convolutions for one sample, those over one and three axes too, whose maps
/// have no predictor.
std::int64_t convolution_macs(const net::Graph&);

}  // namespace numemu::policies
