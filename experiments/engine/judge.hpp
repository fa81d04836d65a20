// Verdicts on measurements with errors, judged together.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// Predictions of the same kind. One holds where the measurement is within its tolerance of it,
/// fails where Holm's procedure over all rejects that the true value is, else it is undecided.
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

/// A finding without verdict whose interval is 95 % of a normal law with that standard error.
Finding unjudged(std::string what, double predicted, double measured, double error);

/// Claims that something is above 0, of one-sided p-values: `above` that it is not above 0, `below`
/// that it is not below. A claim holds where Holm's procedure over `above` rejects, fails where
/// that over `below` does, else it is undecided.
std::vector<std::string> sign_verdicts(const std::vector<double>& above,
                                       const std::vector<double>& below);

}  // namespace numemu::experiments
