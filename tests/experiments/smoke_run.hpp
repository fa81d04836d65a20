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

/// Findings about a claim, whose measurements are finite, and how many of them hold.
std::pair<int, int> held(const Conclusion&, const std::string& claim);

}  // namespace numemu::experiments::testing
