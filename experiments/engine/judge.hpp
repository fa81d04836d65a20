// Verdicts, all of them: what is claimed of a true value beside the interval that a measurement
// gives it.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// The values that a claim allows, both ends among them.
struct Claimed {
  double low = -HUGE_VAL, high = HUGE_VAL;
};
inline Claimed at_least(double bound) { return {bound, HUGE_VAL}; }
inline Claimed at_most(double bound) { return {-HUGE_VAL, bound}; }
inline Claimed near(double value, double tolerance) {
  return {value - tolerance, value + tolerance};
}

/// The rule: holds where the whole interval lies in what is claimed, fails where all of it lies
/// outside, else it cannot see the difference and the claim is undecided (so are NaN and intervals
/// that are not known).
Verdict verdict_on(const stats::Interval& measured, const Claimed&);

/// Predictions of the same kind, judged together. One holds by the rule above; it fails where
/// Holm's procedure over all rejects that the true value is within its tolerance, else it is
/// undecided.
class Judged {
 public:
  /// `error` is the standard error of the measurement, whose law is normal: 0 where it has none,
  /// infinite where it is not known. The interval is that of 95 %.
  void add(std::string what, double predicted, double measured, double error, double tolerance);
  std::vector<Finding> findings() const;

 private:
  std::vector<Finding> findings_;
  std::vector<double> tolerances_, p_values_;
};

/// A measurement without error.
Finding exact_finding(std::string what, double predicted, double measured, bool holds);

/// An identity that the program must keep: both sides are the same sum, so that it does not
/// test the claim and is counted separately.
Finding self_check(std::string what, double expected, double measured, bool holds);

/// Standard errors that a measurement may be away from a prediction that is exact.
inline constexpr double kErrors = 4;

/// An exact prediction: holds within kErrors standard errors (and the rounding of float32 sums),
/// else fails. Undecided where the error is not known or that many of it exceed what is predicted:
/// such a measurement could not distinguish the prediction from zero. The interval is that of 95 %.
Finding closed_form(std::string what, double predicted, double measured, double error);

/// A finding not judged yet, whose interval is 95 % of a normal law with that standard error.
Finding unjudged(std::string what, double predicted, double measured, double error);

/// Claims that something is above 0, of one-sided p-values: `above` that it is not above 0, `below`
/// that it is not below. A claim holds where Holm's procedure over `above` rejects, fails where
/// that over `below` does, else it is undecided.
std::vector<Verdict> sign_verdicts(const std::vector<double>& above,
                                   const std::vector<double>& below);

}  // namespace numemu::experiments
