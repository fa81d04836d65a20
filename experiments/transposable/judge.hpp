// Verdicts on measurements with normal errors, judged together.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// Predictions of the same kind. One holds where the measurement is within `tolerance` of it, fails
/// where Holm's procedure over all rejects that it is, else it is undecided.
class Judged {
 public:
  /// `error` is the standard error of the measurement.
  void add(std::string what, double predicted, double measured, double error, double tolerance);
  std::vector<Finding> findings() const;

 private:
  std::vector<Finding> findings_;
  std::vector<double> tolerances_, p_values_;
};

/// A measurement without error.
Finding exact_finding(std::string what, double predicted, double measured, bool holds);

}  // namespace numemu::experiments
