// The results of the claims that an experiment declares.
#pragma once
#include <vector>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

struct ClaimResult {
  const Claim* claim = nullptr;
  VerdictCounts found = {};  ///< of its findings, self-checks left out
  /// Of those with the claim's verdict the one furthest from its prediction; null without findings.
  const Finding* worst = nullptr;
};

/// One for each claim, in their order. Throws Error for a finding, self-checks apart, that names
/// none of them.
std::vector<ClaimResult> claim_results(const std::vector<Claim>&, const std::vector<Finding>&);

}  // namespace numemu::experiments
