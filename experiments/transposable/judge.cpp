// Verdicts on measurements with normal errors, judged together.
#include "experiments/transposable/judge.hpp"

#include <cmath>

#include "emu/stats/holm.hpp"

namespace numemu::experiments {

void Judged::add(std::string what, double predicted, double measured, double error,
                 double tolerance) {
  constexpr double kNormal95 = 1.959964;
  findings_.push_back({std::move(what), predicted, measured, measured - kNormal95 * error,
                       measured + kNormal95 * error, ""});
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

}  // namespace numemu::experiments
