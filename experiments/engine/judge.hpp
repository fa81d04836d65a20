// The rules by which a finding, a prediction beside its measurement, holds, fails or stays
// undecided. Figures of a row have rules of their own: expected_verdict() of scores (row.hpp),
// empirical_verdict() and fitted_verdict() of the noise of tensors (predict/tensor_noise.hpp).
#pragma once
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emu/stats/interval.hpp"
#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// The values that a claim allows, both ends among them.
struct Allowed {
  double low = -HUGE_VAL, high = HUGE_VAL;
};
inline Allowed at_least(double bound) { return {bound, HUGE_VAL}; }
inline Allowed at_most(double bound) { return {-HUGE_VAL, bound}; }
inline Allowed near(double value, double tolerance) {
  return {value - tolerance, value + tolerance};
}

/// Holds where the whole interval lies in what is claimed, fails where all of it lies outside, else
/// it cannot see the difference and the claim is undecided (so are NaN and intervals that are not
/// known).
Verdict verdict_on(const stats::Interval& measured, const Allowed&);

/// A measured figure and its standard error.
struct Estimate {
  double value = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("value", self.value);
    visit("error", self.error);
  }
};

/// A prediction beside its measurement.
struct Finding {
  std::string what;
  double predicted = NAN, measured = NAN;
  double low = NAN, high = NAN;  ///< 95 % interval of the measurement
  Verdict verdict = Verdict::undecided;
  bool self_check = false;  ///< both sides are the same computation: counted apart
  std::string claim = {};   ///< key of the Claim that it is about
  /// Not in files. How far inside of what is claimed the measurement lies, negative outside; NaN
  /// where the rule has no distance. Of two-sided claims in units of the tolerance.
  double margin = NAN;
  /// How far from what is predicted the true value may lie; NaN where the claim is no such range.
  double tolerance = NAN;

  static void fields(auto& self, const auto& visit) {
    EndsOf ci95{self.low, self.high};
    visit("what", self.what);
    visit("predicted", self.predicted, kNullable);
    visit("measured", self.measured, kNullable);
    visit("ci95", ci95);
    visit("tolerance", self.tolerance, kIfAny);
    visit("verdict", self.verdict, kNullable);
    visit("self_check", self.self_check, kIfAny);
    visit("claim", self.claim, kIfAny);
  }
};

/// Half of the interval: how exactly the measurement is known.
inline double half_width(const Finding& finding) { return (finding.high - finding.low) / 2; }

/// Whether a is the worse of two findings of a claim: by verdict, findings without one last, then
/// by margin, and where one has none by the distance from the prediction relative to the larger of
/// both figures.
bool worse(const Finding& a, const Finding& b);

/// A finding not judged yet, whose interval is 95 % of a normal law with that standard error.
Finding unjudged(std::string what, double predicted, double measured, double error);

/// A measurement whose interval is known, by verdict_on().
Finding interval_finding(std::string what, double predicted, double measured,
                         const stats::Interval&, const Allowed&);

/// A measurement without error; its margin is that in what is claimed, where the claim is a bound.
Finding exact_finding(std::string what, double predicted, double measured, bool holds,
                      const Allowed& = {NAN, NAN});

/// An identity that the program must keep: both sides are the same sum, so that it does not
/// test the claim and is counted separately.
Finding self_check(std::string what, double expected, double measured, bool holds);

/// Standard errors that must lie outside of what is claimed before it fails. Of a thousand findings
/// that are true at their limit 0.03 fail by chance; with 1.96 it would be 25.
inline constexpr double kErrors = 4;

/// A prediction by a model: holds where the interval of 95 % lies within `tolerance`, fails where
/// kErrors standard errors on either side lie beyond it, else the measurement is too coarse to
/// tell.
Finding model_finding(std::string what, double predicted, double measured, double error,
                      double tolerance);

/// The tolerance of a closed form, relative to it, where its experiment derives none.
inline constexpr double kClosedForm = 0.02;

/// A prediction that is exact but for the rounding of float32 sums, by model_finding(): `tolerance`
/// is absolute, NaN stands for kClosedForm of what is predicted. Undecided also where the sample is
/// too small to estimate the error (`enough`), which `what` then says; but not where both sides are
/// equal up to that rounding.
Finding closed_form(std::string what, double predicted, double measured, double error,
                    bool enough = true, double tolerance = NAN);

/// The tolerance of D |mean error of D draws|^2 over their variance, which is 1 without a bias and
/// 1 + D b^2 with one of b standard deviations of a draw: that of b = 1/20.
inline double bias_tolerance(double draws) { return draws / (20 * 20); }

/// Behind what a test alone decides, but not among all that are judged together.
inline constexpr const char* kAfterHolm = "; undecided after Holm's correction";

/// Predictions of the same kind, judged together. One fails where Holm's procedure over all rejects
/// it, else it holds where its interval lies within its tolerance, else it is undecided.
class Judged {
 public:
  /// `error` is the standard error of the measurement, whose law is normal: 0 where it has none,
  /// infinite where it is not known. Rejected is that the true value is within the tolerance. The
  /// interval is that of 95 %.
  void add(std::string what, double predicted, double measured, double error, double tolerance);
  void add(std::string what, double predicted, const Estimate& measured, double tolerance) {
    add(std::move(what), predicted, measured.value, measured.error, tolerance);
  }
  /// `p`: of what the finding predicts, by a test of its own. It rejects a finding whose interval
  /// lies beyond the tolerance alone: what differs by less is no matter.
  void add(Finding, double tolerance, double p);
  std::vector<Finding> findings() const;

 private:
  std::vector<Finding> findings_;
  std::vector<double> tolerances_, p_values_;
};

/// Judges claims that something is above 0, of one-sided p-values, twice which count as the
/// interval beside them has two sides: `above` that it is not above 0, `below` that it is not
/// below. A claim holds where Holm's procedure over `above` rejects, fails where that over `below`
/// does.
void judge_signs(std::span<Finding>, const std::vector<double>& above,
                 const std::vector<double>& below);

/// Judges claims that something is above what is predicted, of two-sided p-values that it equals
/// it: where Holm's procedure over all rejects that, a claim holds or fails by the side of the
/// measurement, else it is undecided.
void judge_sides(std::span<Finding>, const std::vector<double>& p_values);

/// Of a finding whose runs diverged in part: what these would have reached is not known, so that it
/// does not hold.
void judge_diverged(Finding&);

/// Takes the verdict of findings whose set-up cannot show the claim; `why` stands behind what they
/// are.
std::vector<Finding> without_verdict(std::vector<Finding>, const std::string& why);

}  // namespace numemu::experiments
