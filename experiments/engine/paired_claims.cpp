#include "experiments/engine/paired_claims.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/stats/laws.hpp"

namespace numemu::experiments {

Tails tails(const stats::PairedInterval& d, double bound) {
  if (d.n < 2) return {};
  const auto degrees = static_cast<double>(d.n - 1);
  const double error = (d.high - d.low) / 2 / stats::student_quantile(degrees, 0.025);
  if (!std::isfinite(error)) return {};
  if (error == 0) return {d.mean > bound ? 0.0 : 1.0, d.mean < bound ? 0.0 : 1.0};
  const double t = (d.mean - bound) / error;
  return {stats::student_tail(degrees, t), stats::student_tail(degrees, -t)};
}

double p_value(const stats::PairedInterval& d, double bound) {
  const Tails both = tails(d, bound);
  return std::min(1.0, 2 * std::min(both.above, both.below));
}

void PairedClaims::add(std::string what, const stats::PairedInterval& d, double bound,
                       std::string claim) {
  findings_.push_back({std::move(what), bound, d.mean, d.low, d.high});
  findings_.back().claim = std::move(claim);
  p_values_.push_back(p_value(d, bound));
}

std::vector<Finding> PairedClaims::judged() const {
  std::vector<Finding> findings = findings_;
  judge_sides(findings, p_values_);
  return findings;
}

}  // namespace numemu::experiments
