#include "experiments/engine/gains.hpp"

#include <cmath>
#include <utility>

#include "emu/stats/laws.hpp"

namespace numemu::experiments {
namespace {

/// One-sided p-values that the mean is not above 0, and not below.
std::pair<double, double> tails(const stats::PairedInterval& gain) {
  if (gain.n < 2) return {NAN, NAN};
  const auto degrees = static_cast<double>(gain.n - 1);
  const double error = (gain.high - gain.low) / 2 / stats::student_quantile(degrees, 0.025);
  if (!(error > 0)) return {NAN, NAN};
  const double t = gain.mean / error;
  return {stats::student_tail(degrees, t), stats::student_tail(degrees, -t)};
}

}  // namespace

std::vector<Finding> judged_gains(const std::vector<Gain>& gains) {
  std::vector<Finding> findings;
  std::vector<double> above, below;
  for (const auto& [what, difference] : gains) {
    findings.push_back({.what = what + " (claimed above 0)",
                        .predicted = 0,
                        .measured = difference.mean,
                        .low = difference.low,
                        .high = difference.high});
    const auto [upper, lower] = tails(difference);
    above.push_back(upper);
    below.push_back(lower);
  }
  judge_signs(findings, above, below);
  return findings;
}

}  // namespace numemu::experiments
