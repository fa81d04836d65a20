// Settings of the learning rate of a training, for experiments whose network may be a trained file.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// What training_of() takes for the rates recommended for a network and its optimizer, which are
/// those of a training from the start: 0.1 takes a trained ResNet-20 from 87.7 to 76 %.
inline constexpr Setting kRate = {
    "lr",
    "0",
    "0",
    "0",
    "learning rate, as 0.01 for a trained file; 0: the recommended rate",
    real(0, 1e3)};
inline constexpr Setting kWarmup = {
    "warmup",
    "0",
    "0",
    "0",
    "steps of the rising learning rate; without effect where lr is 0",
    whole(0, 1'000'000'000)};

}  // namespace numemu::experiments
