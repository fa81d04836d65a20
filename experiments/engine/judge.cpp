// Verdicts on measurements with errors, judged together.
#include "experiments/engine/judge.hpp"

#include <cmath>
#include <utility>

#include "emu/stats/holm.hpp"
#include "emu/stats/interval.hpp"

namespace numemu::experiments {

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
    const double distance = std::fabs(judged[i].predicted - judged[i].measured);
    judged[i].verdict = distance <= tolerances_[i] ? "holds" : rejected[i] ? "fails" : "undecided";
  }
  return judged;
}

Finding exact_finding(std::string what, double predicted, double measured, bool holds) {
  return {std::move(what), predicted, measured, measured, measured, holds ? "holds" : "fails"};
}

Finding unjudged(std::string what, double predicted, double measured, double error) {
  const double half = stats::kNormal95 * error;
  return {std::move(what), predicted, measured, measured - half, measured + half, ""};
}

std::vector<std::string> sign_verdicts(const std::vector<double>& above,
                                       const std::vector<double>& below) {
  const std::vector<bool> holds = stats::holm(above), fails = stats::holm(below);
  std::vector<std::string> verdicts;
  for (std::size_t i = 0; i < above.size(); ++i)
    verdicts.emplace_back(holds[i] ? "holds" : fails[i] ? "fails" : "undecided");
  return verdicts;
}

}  // namespace numemu::experiments
