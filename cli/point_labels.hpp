// A line for each point of a sweep that tells it from the others.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/sweep_config.hpp"

namespace numemu::cli {

/// Weights, activations and unit of each point, then every key of the recipe that these words leave
/// out and that differs between points ("calibrate.rule percentile(99.9)"). No two are alike.
std::vector<std::string> point_labels(const experiments::SweepConfig&);

}  // namespace numemu::cli
