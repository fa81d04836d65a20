// PairedClaims about paired differences of accuracy, judged together.
#pragma once
#include <string>
#include <vector>

#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// The probability of a mean at least as far from `bound`, either side, where `bound` is the true
/// one: Student's t test. 1 for a single difference.
double p_value(const stats::PairedInterval&, double bound);

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

}  // namespace numemu::experiments
