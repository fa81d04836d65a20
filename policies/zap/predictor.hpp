// The predictor of one layer: a light depthwise network that guesses which activations are zero of
// those that are not computed by position.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/op.hpp"

namespace numemu::policies {

/// The mask types of Shomron et al. (ECCV 2020); the share of positions that are computed.
inline constexpr int kLeastMaskType = 3;     ///< 1/3
inline constexpr int kLargestMaskType = 10;  ///< 8/9; between them 2/5, 1/2, 3/5, 2/3, 3/4, 7/9

/// The positions I_s (computed) and I_t (predicted) of a height x width map, row-major.
struct PositionMask {
  int type = 0;
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> computed;  ///< 1: computed, 0: predicted

  std::int64_t positions() const { return height * width; }
};

/// A periodic tile of the publication (docs/experiments/zap.md) cut to the map. Throws Error unless
/// the type is in 3..10 and the map has a position.
PositionMask position_mask(int type, std::int64_t height, std::int64_t width);

/// The share of computed positions in whole tiles: numerator and denominator.
struct MaskShare {
  std::int64_t computed = 0, of = 1;
  double value() const { return static_cast<double>(computed) / static_cast<double>(of); }
};
/// Throws Error unless the type is in 3..10.
MaskShare mask_share(int type);

// The predictors' convolution: 3 x 3, every channel by itself, border of zeros.

/// y [n, h, w, c] = bias [c] + x * weight [c, 3, 3, 1] in float32, products and sums rounded one by
/// one, taps row by row: the same bits on every CPU and for any number of threads. It calls no
/// Numerics: predictors are not part of the network whose numerics are studied.
/// Gradients of the weights are float32 sums down each column of an image, then float64.
class Depthwise3x3 final : public net::Op {
 public:
  /// Throws Error unless channels are positive.
  explicit Depthwise3x3(std::int64_t channels);
  net::Shape output_shape(net::Shapes inputs) const override;
  void forward(const net::OpCall&, net::OpInputs inputs, net::Tensor& output) const override;
  void backward(const net::OpCall&, const net::OpBackward&) const override;

 private:
  std::int64_t channels_;
};

/// Zero activation prediction (Shomron et al., ECCV 2020) for maps x [batch, height, width,
/// channels] that come out of a ReLU. y = x on computed positions and +0 elsewhere goes through a
/// depthwise 3 x 3 convolution with bias, batch normalisation, ReLU, the same convolution and
/// normalisation again; the result z counts on predicted positions alone.
class ZapPredictor {
 public:
  /// Multiply-adds per predicted activation: two depthwise 3 x 3 kernels.
  static constexpr std::int64_t kMacs = 18;

  /// With initial weights that are a function of seed and layer. `map` is height, width, channels.
  /// Throws Error for another shape and for what position_mask() refuses.
  ZapPredictor(const std::string& layer, const net::Shape& map, int mask_type,
               std::uint64_t seed = 0);

  const PositionMask& mask() const { return mask_; }
  const net::Shape& map() const { return graph_.inputs[0].shape; }
  /// From y to z; parameters LAYER.zap.conv1.weight [channels, 3, 3, 1] and so on.
  net::Graph& graph() { return graph_; }
  const net::Graph& graph() const { return graph_; }

  /// y: what lies on predicted positions is not read, whatever it is. Throws Error for maps of
  /// another shape.
  net::Tensor visible(const net::Tensor& x) const;
  /// z, by running statistics, in float32 (see Depthwise3x3).
  net::Tensor predict(const net::Tensor& x) const;

 private:
  PositionMask mask_;
  net::Graph graph_;
};

/// Whether element i of maps [.., channels] under that mask is computed: on computed positions
/// always, elsewhere where z > threshold. So a prediction of exactly the threshold, a -0 against 0,
/// and NaN predict "zero".
inline bool keeps(const PositionMask& mask, std::int64_t channels, std::int64_t i, float z,
                  float threshold) {
  return mask.computed[static_cast<std::size_t>(i / channels % mask.positions())] != 0 ||
         z > threshold;
}

/// x where keeps(), +0 elsewhere, also in the place of NaN and infinity: what is skipped is never
/// known. x and z [batch, height, width, channels] have one shape.
void skip_zeros(const PositionMask&, const net::Tensor& z, float threshold, net::Tensor& x);

// Training of a predictor on recorded activations, without labels.

/// The settings of Shomron et al.; the rate stays as it is.
struct ZapTraining {
  std::int64_t epochs = 5;
  std::int64_t batch = 128;  ///< maps
  double learning_rate = 0.01;
  std::uint64_t seed = 0;  ///< of the order of the maps
};

/// The loss of predictions z for maps x, of one shape, and its derivative. With m = 1 on computed
/// positions: the mean over all elements of (clamp(z (1 - m) + m, 0, 1) - t)^2, t = 1 where m = 1
/// or x > 0, else 0. The derivative passes the clamp where 0 <= z <= 1.
double zap_loss(const PositionMask&, const net::Tensor& x, const net::Tensor& z,
                net::Tensor* gradient = nullptr);

/// Trains in place on maps [samples, height, width, channels], reshuffled each epoch, with Adam;
/// running statistics too. Same bits for any number of threads. Returns the mean loss of each
/// epoch. Throws Error for no maps or options out of range.
std::vector<double> train_predictor(ZapPredictor&, const net::Tensor& maps, const ZapTraining&);

}  // namespace numemu::policies
