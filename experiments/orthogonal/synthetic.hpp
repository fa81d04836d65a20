// The energy of random neurons that are drawn, rounded and turned, beside its closed forms.
#pragma once
#include <string_view>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::orthogonal {

/// The mean energy (settings neurons, elements, power, draws, repeats, here and below).
void add_random(const ExperimentRun&, Conclusion&);
/// Mean squares of its change by steps that are rounded (settings formats, turns, angle).
void add_rounding(const ExperimentRun&, Conclusion&);
/// What a step of each way changes in float64 (setting series_angle).
void add_ways(const ExperimentRun&, Conclusion&);

/// Whether the rule, "orthogonal(WAY,...)", turns neurons exactly up to rounding.
bool keeps_energy(std::string_view rule);

}  // namespace numemu::experiments::orthogonal
