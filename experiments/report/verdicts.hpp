// Which predictions of the rows held, and the verdicts of a gate
// (experiments/engine/gate.hpp) in words.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/report_row.hpp"
#include "formats/analysis/verdict.hpp"

namespace numemu::experiments {

/// One tensor whose distribution no family fits; `distance` is empty when nothing could be fitted.
struct RefusedTensor {
  std::string layer, role, family;
  std::optional<double> n, distance, threshold;
};

/// A prediction that was made and failed.
struct FailedPrediction {
  std::string what, layer, role, format;     ///< what: "empirical", "fitted", "layer" or "output"
  double predicted_db = 0, measured_db = 0;  ///< measured: NaN where the numbers are not finite
  std::string why = {};                      ///< then: what made them so
};

/// Verdicts of one kind of prediction, and how far it lies from the measurement in dB. A finite
/// prediction of numbers that are NaN or infinite has failed; it has no distance.
struct Tally : VerdictCounts {
  std::size_t not_finite = 0;  ///< of the failures
  double median = 0, largest = 0;
};

/// Verdicts on predictions: the ones that the rows record, or by the same rules where they record
/// none. Points that differ only in their unit repeat tensors; each distinct tensor is counted
/// once.
struct Verdicts {
  std::size_t weight_tensors = 0, weight_accepted = 0;          ///< distinct layers
  std::size_t activation_tensors = 0, activation_accepted = 0;  ///< distinct layers
  Tally empirical, fitted, layers, outputs;                     ///< fitted: accepted fits only
  VerdictCounts accuracy;  ///< of the figure that each row is judged by
  std::size_t not_predicted =
      0;  ///< outputs that were measured, but whose rows say why not predicted
  std::vector<RefusedTensor> refused;
  std::vector<FailedPrediction> failed;  ///< numbers that are not finite, then the furthest first
};

Verdicts judge_predictions(const std::vector<ReportRow>&);

/// "pass", "fail", "undecided", "" for rows that were not judged.
std::string gate_verdict(const ReportRow&);
/// The verdict, with the images that a decision needs where it is undecided.
std::string gate_words(const ReportRow&);
/// "Gate top1 >= 0.99 float32 at 99 %, paired: 3 of 5 pass; 1 fail (...); 1 undecided (...).", one
/// sentence for each target; nothing without a gate. `unfinished` says which points are missing (""
/// for none): then the gate as a whole cannot pass.
std::vector<std::string> gate_sentences(const std::vector<ReportRow>&,
                                        const std::string& unfinished = "");

}  // namespace numemu::experiments
