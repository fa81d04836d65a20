// A training that is traced: what all runs share, and what its checkpoints say of the training
// samples.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/samples/gradients.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::experiments::tracin {

using net::samples::Batch, net::samples::LayerOperands, net::samples::SampleGradients;

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

}  // namespace numemu::experiments::tracin
