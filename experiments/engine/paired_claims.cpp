#include "experiments/engine/paired_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/stats/laws.hpp"
#include "formats/analysis/normal_law.hpp"

namespace numemu::experiments {
namespace {

double of_both_sides(const Tails& tails) {
  return std::min(1.0, 2 * std::min(tails.above, tails.below));
}

}  // namespace

std::string interval_text(const stats::PairedInterval& d, const char* unknown, int digits) {
  if (!std::isfinite(d.low) || !std::isfinite(d.high)) return unknown;
  return fmt::format("[{:+.{}f}, {:+.{}f}]", d.low, digits, d.high, digits);
}

std::string mean_text(const stats::PairedInterval& d, int digits) {
  const std::string interval = interval_text(d, "", digits);
  return fmt::format("{:+.{}f}{}{}", d.mean, digits, interval.empty() ? "" : " ", interval);
}

Tails tails(const stats::PairedInterval& d, double bound) {
  if (d.n < 2) return {};
  const auto degrees = static_cast<double>(d.n - 1);
  const double error = (d.high - d.low) / 2 / stats::student_quantile(degrees, 0.025);
  if (!std::isfinite(error)) return {};
  if (error == 0) return {d.mean > bound ? 0.0 : 1.0, d.mean < bound ? 0.0 : 1.0};
  const double t = (d.mean - bound) / error;
  return {stats::student_tail(degrees, t), stats::student_tail(degrees, -t)};
}

Tails tails(const stats::PairedAnswers& answers, double bound) {
  if (answers.only1 + answers.only2 == 0 && bound == 0) return {};
  const double score = stats::paired_score(answers, 1, bound);
  return {normal::cdf(-score), normal::cdf(score)};
}

double p_value(const stats::PairedInterval& d, double bound) {
  return of_both_sides(tails(d, bound));
}

double p_value(const stats::PairedAnswers& answers, double bound) {
  return of_both_sides(tails(answers, bound));
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
