// Influences of a trained network in closed form: first order, factored, under repeated draws.
#pragma once
#include <cstdint>
#include <vector>

#include "experiments/tracin/traced.hpp"

namespace numemu::experiments::tracin {

/// Shares of its loss that steps on a sample take, to first order.
inline constexpr double kLargeStep = 0.4, kSmallStep = 0.01;

/// Of pairs of samples: dot products, and the change of one's loss by a step on the other.
struct FirstOrder {
  double apart = 0;        ///< dot products, factored and of whole gradients, over the lengths
  double allowed = 0;      ///< of that by float32 sums
  double left = 0;         ///< of the change by a large step, beside the influence, over the change
  std::int64_t pairs = 0;  ///< that have a power
  /// Power of the rate with which that falls between small steps, the median of pairs.
  double order = 0, low = 0, high = 0;

  static void fields(auto& self, const auto& visit) {
    visit("apart", self.apart);
    visit("allowed", self.allowed);
    visit("left", self.left);
    visit("pairs", self.pairs);
    visit("order", self.order);
    visit("low", self.low);
    visit("high", self.high);
  }
};
/// Sample i with sample i + n / 2; the network is left as it is.
FirstOrder first_order(net::Graph&, const Batch&, const std::vector<LayerOperands>&);

/// By how much a step of `rate` along the gradient of sample `by` lowers the loss of sample `on`:
/// the integral of the dot product of both gradients along the way, by Gauss's rule of three
/// points. The difference of two losses would round to float32 what first order misses.
double change_of_loss(net::Graph&, const Batch&, std::int64_t by, std::int64_t on, double rate);

/// Influences in closed form beside those of a trained network: first order, factored, and under
/// repeated draws (settings probes, draws).
void add_probes(const ExperimentRun&, const net::Dataset&, const Plan&, const TrainTrial&,
                Conclusion&);

}  // namespace numemu::experiments::tracin
