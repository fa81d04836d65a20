// The largest rate at which training stays near a minimum, by bisection.
#pragma once
#include <cstdint>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::delayed_weights {

/// Octaves of the rates between which the largest stable one is bisected, and how far.
inline constexpr double kLowestRate = -16, kHighestRate = 12, kRateResolution = 0.25;
/// A training has left its minimum where a step's loss exceeds that of the first so many times.
inline constexpr double kDiverged = 2;

struct StableRate {
  double octaves = 0;  ///< log2 of the rate, to half of the resolution; NaN outside the bounds

  static void fields(auto& self, const auto& visit) { visit("octaves", self.octaves); }
};

/// Of the trial's training, which begins at the minimum that `before` epochs of adam-l2 in float32
/// reach with the same weight decay: without decay the cross-entropy of images that a network has
/// learnt goes to zero and takes the curvature with it, so that a training that began beyond its
/// limit settles. The trial's weight decay is to be that of its loss (sgd).
StableRate largest_stable_rate(TrainTrial, const net::Dataset&, std::int64_t before);

}  // namespace numemu::experiments::delayed_weights
