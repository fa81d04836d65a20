// An experiment at its smallest size, with some settings of a test.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "tests/files.hpp"

namespace numemu::experiments::testing {

/// It writes below `folder`.
ExperimentRun smoke_run(const std::string& name, const test::TemporaryFolder& folder,
                        const std::vector<std::string>& settings, std::uint64_t seed = 0);

}  // namespace numemu::experiments::testing
