// What the rows say, in numbers and in sentences: losses, the cheapest safe point, which
// predictions held.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// A loss of top-1 that people call small: half a point.
inline constexpr double kSmallLoss = 0.005;
/// An accepted fitted prediction holds within this many dB.
inline constexpr double kFittedToleranceDb = 0.5;
/// An empirical prediction equals the measured MSE up to float64 summation order.
inline constexpr double kEmpiricalTolerance = 1e-9;

/// One tensor whose distribution no family fits; `distance` is empty when nothing could be fitted.
struct RefusedTensor {
  std::string layer, role, family;
  std::optional<double> n, distance, threshold;
};

/// A prediction that was made and failed.
struct FailedPrediction {
  std::string what, layer, role, format;  ///< what: "empirical" or "fitted"
  double predicted_db = 0, measured_db = 0;
};

/// Absolute differences between predicted and measured SQNR, in dB.
struct Spread {
  std::size_t count = 0;
  double median = 0, largest = 0;
};

/// Verdicts on predictions. Points that differ only in their unit repeat tensors; each is counted
/// once.
struct Verdicts {
  std::size_t weight_tensors = 0, weight_accepted = 0;          ///< distinct layers
  std::size_t activation_tensors = 0, activation_accepted = 0;  ///< distinct layers
  std::size_t fitted = 0, fitted_held = 0;                      ///< accepted fits with a prediction
  std::size_t empirical = 0, empirical_held = 0;                ///< deterministic rounding only
  Spread layers, outputs;
  std::vector<RefusedTensor> refused;
  std::vector<FailedPrediction> failed;
};

Verdicts judge_predictions(const std::vector<Record>&);

/// The unquantized row of the same network, data and seed; the first one; null if there is none.
const Record* find_baseline(const std::vector<Record>&, const Record& of);

/// The quantized row with the fewest mean bits whose top-1 lies inside its baseline's interval;
/// more top-1 wins ties.
const Record* cheapest_safe(const std::vector<Record>&);

/// The headline paragraph, sentence by sentence, in plain text.
std::vector<std::string> headline(const std::vector<Record>&, const Verdicts&);

/// Labels of the quantized configurations that lose less than kSmallLoss (`small`) or at least
/// that; each label once.
std::vector<std::string> labels_by_loss(const std::vector<Record>&, bool small);

/// A count with its thousands apart: "10,000"; "–" if there is none.
std::string grouped(const std::optional<double>& count);

/// "Rounding rne; overflow saturate; scale ..." over all quantized rows: what captions say about
/// the axes.
std::string conditions(const std::vector<Record>&);

}  // namespace numemu::experiments
