// The results of the claims that an experiment declares.
#pragma once
#include <cstddef>
#include <vector>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

struct ClaimResult {
  const Claim* claim = nullptr;
  std::size_t holds = 0, undecided = 0, fails = 0;  ///< findings, self-checks left out
  /// Of those with the claim's verdict the one furthest from its prediction; null without findings.
  const Finding* worst = nullptr;

  std::size_t findings() const { return holds + undecided + fails; }
  /// A claim fails with any of its findings, and holds where all of them do.
  Verdict verdict() const;
};

/// One for each claim, in their order. Throws Error for a finding, self-checks apart, that names
/// none of them.
std::vector<ClaimResult> claim_results(const std::vector<Claim>&, const std::vector<Finding>&);

}  // namespace numemu::experiments
