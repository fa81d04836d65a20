// What the steps share that move scales between layers and leave the network's function.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "policies/tuning/equalise.hpp"
#include "policies/tuning/tuning.hpp"

namespace numemu::policies {

/// The option `scales`: real or powers_of_two.
Option scale_steps_option(std::string& scales);
ScaleSteps scale_steps(std::string_view scales);

/// Drops the ranges of all that such a step changed and calibrates again. Throws Error with every
/// reason where nothing could be moved; `step` is its name.
void forget_moved_ranges(Tuning&, std::string_view step, const std::vector<ScaledLink>&);

/// "2 of 3 links scaled by 0.2 to 6; as they were: layer b (linear) reads ..."
std::string summary_of(const std::vector<ScaledLink>&);

}  // namespace numemu::policies
