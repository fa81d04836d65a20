// Differences paired by seed: as texts, and claims about them that are judged together.
#pragma once
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// "[-0.31, +0.52]"; `unknown` for the infinite interval of a single seed.
std::string interval_text(const stats::PairedInterval&, const char* unknown = "-", int digits = 2);
/// "+0.10 [-0.31, +0.52]", of a single seed the mean alone.
std::string mean_text(const stats::PairedInterval&, int digits = 2);

/// The same difference, taken the other way.
inline stats::PairedInterval negated(const stats::PairedInterval& d) {
  return {-d.mean, -d.high, -d.low, d.n};
}

/// One-sided p-values.
struct Tails {
  double above = 1;  ///< that the true mean is not above the bound
  double below = 1;  ///< that it is not below
};

/// Of Student's t test. Both are 1 for a single difference and where the interval is not known.
/// Differences that are all equal give 0 on the side of the bound where they lie, else 1.
Tails tails(const stats::PairedInterval&, double bound);
/// Of a difference of answers, by the score test that gives its interval
/// (stats::paired_difference); `bound` lies inside (-1, 1). Both are 1 where no answer differs and
/// the bound is 0.
Tails tails(const stats::PairedAnswers&, double bound);

/// The probability of a mean at least as far from `bound`, either side, where `bound` is the true
/// one: twice the smaller of tails(), at most 1.
double p_value(const stats::PairedInterval&, double bound);
double p_value(const stats::PairedAnswers&, double bound);

/// Collects claims that a mean difference lies above a bound.
class PairedClaims {
 public:
  /// `claim` is the key of the experiment's claim.
  void add(std::string what, const stats::PairedInterval&, double bound, std::string claim = "");
  /// By judge_sides().
  std::vector<Finding> judged() const;

 private:
  std::vector<Finding> findings_;
  std::vector<double> p_values_;
};

/// A difference that is claimed to be above 0.
struct PairedGain {
  std::string what;
  stats::PairedInterval difference;
};

/// One finding each, with " (claimed above 0)" behind `what`: judge_signs() of tails() at 0, with
/// Holm's procedure over all. One seed gives no verdict.
std::vector<Finding> judge_gains(const std::vector<PairedGain>&);

}  // namespace numemu::experiments
