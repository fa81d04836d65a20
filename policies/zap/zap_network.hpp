// The predictors of a trained network: made, trained on what its ReLUs give, stored, loaded; what
// they skip, counted; and numerics that skip it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "policies/zap/predictor.hpp"

namespace numemu::policies {

/// Activations of one layer's maps. predicted = zeros_skipped + losses + values_kept +
/// zeros_kept, always.
struct ZapTally {
  std::int64_t computed = 0;       ///< |I_s|
  std::int64_t predicted = 0;      ///< |I_t|
  std::int64_t zeros_skipped = 0;  ///< hit: a zero that was predicted
  std::int64_t losses = 0;         ///< miss 1 -> 0: a value that was skipped; harms
  std::int64_t values_kept = 0;    ///< hit: a value that was predicted
  std::int64_t zeros_kept = 0;     ///< miss 0 -> 1: a saving forgone
  double sum = 0;                  ///< of all activations
  double sum_computed = 0;         ///< of those in I_s
  double sum_lost = 0;             ///< of those skipped

  std::int64_t elements() const { return computed + predicted; }
  /// M0: activations that are not computed.
  std::int64_t skipped() const { return zeros_skipped + losses; }
  /// skipped() / elements(); 0 of nothing.
  double saving() const;
  /// 1 - sum(x keep) / sum(x), as lost over all; 0 where the sum is 0.
  double error() const;
  /// error() for a threshold of +infinity: everything predicted is skipped.
  double error_limit() const;

  ZapTally& operator+=(const ZapTally&);
};

/// The tally of maps x under predictions z, both [batch, height, width, channels]. An activation is
/// a value where x > 0, else a zero. Sums in float64 over a fixed tree.
ZapTally tally_of(const PositionMask&, const net::Tensor& x, const net::Tensor& z, float threshold);
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

/// Default number of elements of maps held at a time: 512 MiB.
inline constexpr std::int64_t kRecordedElements = std::int64_t{1} << 27;

/// Calls `use` with the maps of every layer of the ZapNetwork in turn: what its ReLU gives in
/// float32 for samples [0, samples), [samples, map...]. One pass records as many layers as together
/// have at most `most` elements, but one at least. Throws Error for a layer that the graph lacks.
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

/// Answers as `inner` does, and sets each activation of a layer of the ZapNetwork to zero that its
/// predictor says is zero: after the result's own rounding (vector_result), before its storage
/// format (edge). In training the gradient does not pass where it did, for ReLU looks at its
/// output. Predictors compute in float32 and do not change.
class ZapNumerics final : public net::Forwarding {
 public:
  /// Both must outlive it.
  ZapNumerics(const ZapNetwork&, net::Numerics& inner);

  const ZapNetwork& network() const { return network_; }

  /// Whether inference steps are counted (each batch once per run).
  void count(bool on) { counting_ = on; }
  /// Of everything counted so far, per layer of the network: the same bits for any number of
  /// threads, as long as no two batches begin with one sample.
  std::vector<ZapTally> tallies() const;
  void forget() { counted_.assign(network_.layers.size(), {}); }

  void edge(const net::Step&, const net::Edge&, net::Tensor&) override;

 private:
  const ZapNetwork& network_;
  bool counting_ = false;
  std::mutex mutex_;
  // By layer and first sample of the batch.
  std::vector<std::map<std::int64_t, ZapTally>> counted_;
};

}  // namespace numemu::policies
