// Findings counted claim by claim.
#include "experiments/engine/claims.hpp"

#include <algorithm>

#include "formats/error.hpp"

namespace numemu::experiments {

std::vector<ClaimResult> claim_results(const std::vector<Claim>& claims,
                                       const std::vector<Finding>& findings) {
  std::vector<ClaimResult> results;
  for (const Claim& claim : claims) results.push_back({.claim = &claim});
  for (const Finding& finding : findings) {
    if (finding.self_check) continue;
    const auto found = std::find_if(results.begin(), results.end(), [&](const ClaimResult& result) {
      return finding.claim == result.claim->key;
    });
    if (found == results.end())
      throw Error("finding '" + finding.what + "': expected a claim of its experiment, found '" +
                  finding.claim + "'");
    found->found.add(finding.verdict);
    if (found->worst == nullptr || worse(finding, *found->worst)) found->worst = &finding;
  }
  return results;
}

}  // namespace numemu::experiments
