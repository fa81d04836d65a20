// Looks at the gradients of float32 training: their laws, and what every split does to them.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/lognormal_gradients/laws.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::lognormal_gradients {

/// One split of a width and the values it has.
struct Candidate {
  Split split;
  FormatGrid grid;
};

/// Every split of these widths.
std::vector<Candidate> candidates_of(const std::vector<int>& widths);

/// When the gradients are looked at: evenly, `looks` times an epoch, first of all at the first
/// step.
struct Looks {
  std::int64_t looks = 1, steps_per_epoch = 1;
  bool at(std::int64_t step) const {
    return step % steps_per_epoch == 0 ||
           step * looks / steps_per_epoch != (step - 1) * looks / steps_per_epoch;
  }
};

/// The outcome of a training, and its records: for each layer and look {step, epoch, layer, n,
/// zeros, ln: {mean, sigma}, log2: {mean, sigma}, ks: {family: distance}, errors: [{mean,
/// predicted, measured}]}, errors in the order of the candidates, each at the mean that is best for
/// sigma. Distances are those of the elements that are not zero, signs included.
Json observe(TrainTrial, const net::Dataset&, const Looks&, const std::vector<Candidate>&);

}  // namespace numemu::experiments::lognormal_gradients
