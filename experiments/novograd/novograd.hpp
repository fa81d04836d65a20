// Trainings whose gradients are multiplied by a power of two, bit by bit beside those whose are
// not.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::novograd {

/// A training with all gradients times 2^k.
struct Scaled {
  std::string digest;     ///< of what every update adds to the parameters
  double least_norm = 0;  ///< the smallest root of a second moment that is not 0; 0: none
  std::int64_t lost = 0;  ///< gradients that became subnormal or infinite by the factor

  static void fields(auto& self, const auto& visit) {
    visit("digest", self.digest);
    visit("least_norm", self.least_norm);
    visit("lost", self.lost);
  }
};

/// As run_train_trial() trains in float32, without the test.
Scaled train_scaled(const TrainTrial&, const net::Dataset&, int k);

/// The largest k with which the gradients times 2^k have other bits under this epsilon than without
/// one, of a training whose smallest norm at k = 0 is `least_norm`: where epsilon 2^-k exceeds half
/// an ulp of the norm, the sum of norm and epsilon is rounded away from the norm.
std::int64_t largest_k_changed(double epsilon, double least_norm);

/// Throws Error where the data set has too few training samples for the setting steps.
void check_steps(const Settings&, const net::Dataset&);

/// Gradients of 2^-K to 2^K (settings scales, epsilons, steps) under novograd, adam and sgd.
void add_scaling(const ExperimentRun&, const std::string& net, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::novograd
