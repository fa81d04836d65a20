// An experiment run on the terminal: its progress, then the answer, claims and sentences.
#pragma once
#include "api/studies.hpp"

namespace numemu::cli {

struct ShownExperiment {
  bool json = false, quiet = false;
  bool strict = false;  ///< a finding that fails ends with 1
  bool tables = false;  ///< they are what was asked for: before the claims, as far as they fit
};

/// Runs it behind a bar.
api::ExperimentResult run_one(const api::ExperimentRequest& asked, bool quiet);
/// Runs and prints it; the exit code.
int run_and_print(const api::ExperimentRequest& asked, const ShownExperiment& shown);

}  // namespace numemu::cli
