#include "experiments/engine/paired_gains.hpp"

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

std::vector<Finding> judge_gains(const std::vector<PairedGain>& gains) {
  std::vector<Finding> findings;
  std::vector<double> above, below;
  for (const PairedGain& gain : gains) {
    findings.push_back({.what = gain.what + " (claimed above 0)",
                        .predicted = 0,
                        .measured = gain.difference.mean,
                        .low = gain.difference.low,
                        .high = gain.difference.high});
    above.push_back(tails(gain.difference).first);
    below.push_back(tails(gain.difference).second);
  }
  judge_signs(findings, above, below);
  return findings;
}

}  // namespace numemu::experiments
