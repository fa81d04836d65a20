#include "experiments/engine/judge.hpp"

#include <utility>

#include "emu/stats/holm.hpp"
#include "formats/analysis/normal_law.hpp"

namespace numemu::experiments {

Json to_json(Verdict verdict) {
  return verdict == Verdict::none ? Json() : Json(to_string(verdict));
}

Verdict verdict_on(const stats::Interval& measured, const Claimed& claimed) {
  return decide(measured.low >= claimed.low && measured.high <= claimed.high,
                measured.high < claimed.low || measured.low > claimed.high);
}

Verdict verdict_by_distance(double distance, double holds, double fails) {
  return decide(distance <= holds, !(distance <= fails));
}

Finding unjudged(std::string what, double predicted, double measured, double error) {
  const double half = stats::kNormal95 * error;
  return {std::move(what), predicted, measured, measured - half, measured + half};
}

Finding interval_finding(std::string what, double predicted, double measured,
                         const stats::Interval& interval, const Claimed& claimed) {
  return {std::move(what), predicted,     measured,
          interval.low,    interval.high, verdict_on(interval, claimed)};
}

Finding exact_finding(std::string what, double predicted, double measured, bool holds) {
  return {std::move(what), predicted, measured, measured, measured, decide(holds, !holds)};
}

Finding self_check(std::string what, double expected, double measured, bool holds) {
  Finding finding = exact_finding(std::move(what), expected, measured, holds);
  finding.self_check = true;
  return finding;
}

Finding closed_form(std::string what, double predicted, double measured, double error,
                    bool enough) {
  constexpr double kRounding = 1e-6;  // of what is certain, in float32
  const double width = kErrors * error;
  Finding finding = unjudged(std::move(what), predicted, measured, error);
  if (!enough || !(width <= std::fabs(predicted))) return finding;
  const double slack = width + kRounding * std::fabs(predicted);
  finding.verdict = verdict_by_distance(std::fabs(measured - predicted), slack, slack);
  return finding;
}

Finding model_finding(std::string what, double predicted, double measured, double error,
                      double tolerance) {
  const double width = kErrors * error;
  Finding finding = unjudged(std::move(what), predicted, measured, error);
  finding.verdict = verdict_on({measured - width, measured + width}, near(predicted, tolerance));
  return finding;
}

void Judged::add(std::string what, double predicted, double measured, double error,
                 double tolerance) {
  const double beyond = std::fabs(predicted - measured) - tolerance;
  add(unjudged(std::move(what), predicted, measured, error), tolerance,
      beyond <= 0 ? 1
      : error > 0 ? normal::cdf(-beyond / error)
                  : 0);
}

void Judged::add(Finding finding, double tolerance, double p) {
  findings_.push_back(std::move(finding));
  tolerances_.push_back(tolerance);
  p_values_.push_back(p);
}

std::vector<Finding> Judged::findings() const {
  std::vector<Finding> judged = findings_;
  const std::vector<bool> rejected = stats::holm(p_values_);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    Finding& finding = judged[i];
    const Claimed claimed = near(finding.predicted, tolerances_[i]);
    const bool within = verdict_on({finding.low, finding.high}, claimed) == Verdict::holds;
    finding.verdict = decide(within && !rejected[i], rejected[i]);
  }
  return judged;
}

void judge_signs(std::span<Finding> findings, const std::vector<double>& above,
                 const std::vector<double>& below) {
  const std::vector<bool> holds = stats::holm(above), fails = stats::holm(below);
  for (std::size_t i = 0; i < findings.size(); ++i)
    findings[i].verdict = decide(holds[i], fails[i]);
}

void judge_sides(std::span<Finding> findings, const std::vector<double>& p_values) {
  const std::vector<bool> rejected = stats::holm(p_values);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Finding& finding = findings[i];
    finding.verdict = decide(rejected[i] && finding.measured > finding.predicted, rejected[i]);
  }
}

}  // namespace numemu::experiments
