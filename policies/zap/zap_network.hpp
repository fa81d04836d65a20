// The predictors of a trained network: made, trained on what its ReLUs give, stored, loaded.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/zap/predictor.hpp"

namespace numemu::policies {

// The places in a network where zeros can be predicted: ReLUs whose maps come from a convolution.

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

/// The predictor of one layer and the threshold that it is used with.
struct ZapLayer {
  ZapSite site;
  ZapPredictor predictor;
  float threshold = 0;
};

/// Layers in the order of forward.
struct ZapNetwork {
  std::vector<ZapLayer> layers;

  /// The layer of that name, or null.
  const ZapLayer* find(std::string_view layer) const;
  void set_threshold(float threshold);
  /// Sets elements that the layer's predictor predicts as zero to zero; other layers are unchanged.
  /// Reentrant.
  void skip(std::string_view layer, net::Tensor& result) const;
};

/// Untrained predictors for these sites, all with one mask type. Throws Error for none.
ZapNetwork make_zap_network(const std::vector<ZapSite>&, int mask_type, std::uint64_t seed);

/// Samples [first, first + count) of the data to train on, [count, ...].
using ZapSamples = std::function<net::Tensor(std::int64_t first, std::int64_t count)>;

/// What one node of the graph gives in float32 for samples [0, samples): [samples, map...].
net::Tensor record_maps(const net::Graph&, std::string_view layer, std::int64_t samples,
                        const ZapSamples&);

/// Default number of elements of maps held at a time: 512 MiB.
inline constexpr std::int64_t kRecordedElements = std::int64_t{1} << 27;

/// Calls `use` with the maps of every layer of the ZapNetwork in turn, recorded as above: of as
/// many layers in one pass as together have at most `most` elements, but of one at least.
void for_each_map(const ZapNetwork&, const net::Graph&, std::int64_t samples, const ZapSamples&,
                  const std::function<void(std::size_t layer, net::Tensor maps)>& use,
                  std::int64_t most = kRecordedElements);

/// Trains each predictor by itself on the maps of the float32 network without predictors. Returns
/// the losses of the epochs by layer.
std::vector<std::vector<double>> train_zap_network(ZapNetwork&, const net::Graph&,
                                                   std::int64_t samples, const ZapSamples&,
                                                   const ZapTraining&);

/// Parameters as safetensors; layers, mask types and thresholds are metadata.
void save_zap_network(const std::string& path, const ZapNetwork&);
/// Throws Error naming the file where it holds no predictors, or some that do not fit the graph.
ZapNetwork load_zap_network(const std::string& path, const net::Graph&);

}  // namespace numemu::policies
