// Verdicts by interval, alone or corrected for how many are judged together.
#include "experiments/engine/judge.hpp"

#include <utility>

#include "emu/stats/holm.hpp"

namespace numemu::experiments {

Verdict verdict_on(const stats::Interval& measured, const Claimed& claimed) {
  if (measured.low >= claimed.low && measured.high <= claimed.high) return Verdict::holds;
  if (measured.high < claimed.low || measured.low > claimed.high) return Verdict::fails;
  return Verdict::undecided;
}

void Judged::add(std::string what, double predicted, double measured, double error,
                 double tolerance) {
  findings_.push_back(unjudged(std::move(what), predicted, measured, error));
  tolerances_.push_back(tolerance);
  const double beyond = std::fabs(predicted - measured) - tolerance;
  p_values_.push_back(beyond <= 0 ? 1 : error > 0 ? stats::normal_tail(beyond / error) : 0);
}

std::vector<Finding> Judged::findings() const {
  std::vector<Finding> judged = findings_;
  const std::vector<bool> rejected = stats::holm(p_values_);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    Finding& finding = judged[i];
    const bool holds = verdict_on({finding.low, finding.high},
                                  near(finding.predicted, tolerances_[i])) == Verdict::holds;
    finding.verdict = holds ? Verdict::holds : rejected[i] ? Verdict::fails : Verdict::undecided;
  }
  return judged;
}

Finding exact_finding(std::string what, double predicted, double measured, bool holds) {
  return {std::move(what), predicted, measured,
          measured,        measured,  holds ? Verdict::holds : Verdict::fails};
}

Finding self_check(std::string what, double expected, double measured, bool holds) {
  Finding finding = exact_finding(std::move(what), expected, measured, holds);
  finding.self_check = true;
  return finding;
}

Finding closed_form(std::string what, double predicted, double measured, double error) {
  constexpr double kRounding = 1e-6;  // of what is certain, in float32
  const double width = kErrors * error;
  Finding finding = unjudged(std::move(what), predicted, measured, error);
  if (!(width <= std::fabs(predicted))) return finding;
  const double slack = width + kRounding * std::fabs(predicted);
  finding.verdict = std::fabs(measured - predicted) <= slack ? Verdict::holds : Verdict::fails;
  return finding;
}

Finding unjudged(std::string what, double predicted, double measured, double error) {
  const double half = stats::kNormal95 * error;
  return {std::move(what), predicted, measured, measured - half, measured + half};
}

std::vector<Verdict> sign_verdicts(const std::vector<double>& above,
                                   const std::vector<double>& below) {
  const std::vector<bool> holds = stats::holm(above), fails = stats::holm(below);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < above.size(); ++i)
    verdicts.push_back(holds[i] ? Verdict::holds : fails[i] ? Verdict::fails : Verdict::undecided);
  return verdicts;
}

}  // namespace numemu::experiments
