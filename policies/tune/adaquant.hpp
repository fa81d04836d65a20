// AdaQuant: a layer's weight, bias and ranges trained until its quantized outputs come nearest to
// given ones (Hubara et al. 2020, arXiv 2006.10518).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "emu/net/op.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/tune/base/trained_range.hpp"

namespace numemu::policies {

struct AdaQuantOptions {
  std::int64_t iterations = 1000, batch = 50;
  /// Rates of Adam, as published: of the activation's range, of the weight's ranges, of the weight
  /// and of the bias.
  double activation_rate = 0.1, range_rate = 1e-3, weight_rate = 1e-5, bias_rate = 1e-3;
  std::uint64_t seed = 0;  ///< of the order of samples
};

/// A layer apart from its network. The operator's first parameter is the weight, [out, ..., in],
/// the second, if there is one, the bias; both are tuned in place.
struct AdaQuantLayer {
  net::Op& op;
  const net::Tensor& x;       ///< its inputs [samples, ...]
  const net::Tensor& target;  ///< the outputs wanted [samples, ...], before the activation function
  bool relu = false;          ///< the outputs are compared behind a ReLU
  /// Null: float32. Ranges of integers without blocks are trained; all else keeps the recipe's
  /// scales, chosen anew for the current weight and for each sample.
  std::optional<RolePolicy> weight, activation;
};

struct AdaQuantResult {
  /// Mean squared errors of the outputs over all samples. The first two are of the weight alone
  /// rounded, as tr(D X^T X D^T) predicts and as measured, without a ReLU.
  double predicted = 0, rounded = 0;
  double before = 0, after = 0;  ///< both operands quantized, behind the ReLU if there is one
  std::optional<TensorScale> activation;  ///< trained
  std::vector<float> weight_scales;       ///< trained, one per group; else empty
  std::int64_t best = 0;                  ///< the iteration whose state was kept; 0: the first
};

/// Trains by Adam on the mean squared error of batches of samples drawn without replacement. The
/// state with the least error on all samples is kept, of those after every tenth of the iterations
/// and the first. `progress` is told the iterations done. The same bits for any number of threads.
/// Throws Error for an operator without weight, and for stochastic rounding.
AdaQuantResult adaquant(const AdaQuantLayer&, const AdaQuantOptions&,
                        const std::function<void(std::int64_t)>& progress = {});

}  // namespace numemu::policies
