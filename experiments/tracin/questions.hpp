// Parts of the experiment tracin.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/tracin/samples.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::experiments::tracin {

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

/// Share of its loss that a step on a sample takes, to first order. Below a tenth float32 losses
/// round by as much as second order leaves.
inline constexpr double kFirstStep = 0.4;

/// Of pairs of samples: dot products, and the change of one's loss by a step on the other.
struct FirstOrder {
  double apart = 0;    ///< dot products, factored and of whole gradients, over the lengths
  double allowed = 0;  ///< of that by float32 sums
  double left = 0;     ///< of the change of a loss, beside the influence, over the change
  double order = 0, low = 0, high = 0;  ///< power of the rate with which that falls

  static void fields(auto& self, const auto& visit) {
    visit("apart", self.apart);
    visit("allowed", self.allowed);
    visit("left", self.left);
    visit("order", self.order);
    visit("low", self.low);
    visit("high", self.high);
  }
};
/// Sample i with sample i + n / 2; the network is left as it is.
FirstOrder first_order(net::Graph&, const Batch&, const std::vector<LayerOperands>&);

/// Influences in closed form beside those of a trained network: first order, factored, and under
/// repeated draws (settings probes, draws).
void add_probes(const ExperimentRun&, const net::Dataset&, const Plan&, const TrainTrial&,
                Conclusion&);

}  // namespace numemu::experiments::tracin
