// Training of a predictor on recorded activations, without labels.
#pragma once
#include <cstdint>
#include <vector>

#include "policies/zap/predictor.hpp"

namespace numemu::policies {

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
