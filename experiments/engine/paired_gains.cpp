#include "experiments/engine/paired_gains.hpp"

#include "experiments/engine/paired_claims.hpp"

namespace numemu::experiments {

std::vector<Finding> judge_gains(const std::vector<PairedGain>& gains) {
  std::vector<Finding> findings;
  std::vector<double> above, below;
  for (const PairedGain& gain : gains) {
    findings.push_back({.what = gain.what + " (claimed above 0)",
                        .predicted = 0,
                        .measured = gain.difference.mean,
                        .low = gain.difference.low,
                        .high = gain.difference.high});
    const Tails both = tails(gain.difference, 0);
    above.push_back(both.above);
    below.push_back(both.below);
  }
  judge_signs(findings, above, below);
  return findings;
}

}  // namespace numemu::experiments
