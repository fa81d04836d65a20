// A training that is traced: what all runs share, what its checkpoints say of the training samples,
// and their influences in closed form: first order, factored, under repeated draws.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/per_sample/gradients.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::experiments::tracin {

using net::per_sample::Batch, net::per_sample::LayerOperands, net::per_sample::SampleGradients;

/// Of the samples in the order of their self-influence.
inline constexpr std::array<double, 3> kTop = {0.1, 0.2, 0.3};

/// What all runs share; the settings that training_of() does not read.
struct Plan {
  std::vector<const Format*> formats;
  std::int64_t checkpoints = 5, ranked = 0, targets = 0, probes = 0, draws = 0;
  double flipped = 0.1;

  /// "float32", then of every format how its operands are stored.
  std::vector<std::string> methods() const;
  /// What the trials' points have in common.
  Json point() const;
};
/// Throws Error naming the setting.
Plan plan_of(const Settings&);

/// Random bits of a draw.
Rounding stochastic();

/// Training labels of which some are replaced.
net::Dataset with_flips(const net::Dataset&, const Plan&, std::uint64_t seed);

/// A training and what its checkpoints say of the training samples.
struct Traced {
  TrainOutcome outcome;
  std::vector<double> found, expected;  ///< per cent of the flipped labels: [method][top]
  /// Rank correlation with float32 of influences on test samples, the mean over these: [method].
  std::vector<double> ranks, expected_ranks;

  static void fields(auto& self, const auto& visit) {
    visit("outcome", self.outcome);
    visit("found", self.found);
    visit("expected", self.expected);
    visit("ranks", self.ranks);
    visit("expected_ranks", self.expected_ranks);
  }
};
Traced trace(TrainTrial, const net::Dataset& clean, const net::Dataset& flipped, const Plan&);

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
