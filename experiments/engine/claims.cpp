// Findings counted claim by claim.
#include "experiments/engine/claims.hpp"

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

/// Distance from the prediction, relative to the larger of the two.
double miss(const Finding& finding) {
  const double size = std::max(std::fabs(finding.predicted), std::fabs(finding.measured));
  return size > 0 ? std::fabs(finding.measured - finding.predicted) / size : 0;
}

int badness(Verdict verdict) {
  return verdict == Verdict::fails ? 2 : verdict == Verdict::undecided ? 1 : 0;
}

bool worse(const Finding& a, const Finding& b) {
  return badness(a.verdict) != badness(b.verdict) ? badness(a.verdict) > badness(b.verdict)
                                                  : miss(a) > miss(b);
}

}  // namespace

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
