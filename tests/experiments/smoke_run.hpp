// An experiment at its smallest size, with some settings of a test, and what it found.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "tests/files.hpp"

namespace numemu::experiments::testing {

/// It writes below `folder`.
ExperimentRun smoke_run(const std::string& name, const test::TemporaryFolder& folder,
                        const std::vector<std::string>& settings, std::uint64_t seed = 0);

/// Whether a closed form is within 4 standard errors of its measurement, and the rounding of
/// float32: how tests judge exact forms, whatever a run of this size shows. Any other claim holds,
/// or is undecided with what it predicts within 4 standard errors.
bool agrees(const Finding&);

/// Findings about a claim, whose measurements are finite, and how many of them agree.
std::pair<int, int> held(const Conclusion&, const std::string& claim);

}  // namespace numemu::experiments::testing
