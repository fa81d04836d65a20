// What the rows say, in numbers and in sentences: losses, the cheapest safe point, which
// predictions held.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/record.hpp"
#include "formats/analysis/comparison.hpp"

namespace numemu::experiments {

/// A loss of top-1 that people call small: half a point.
inline constexpr double kSmallLoss = 0.005;
/// A rise in bits per character that is called small: 0.7 % of the perplexity.
inline constexpr double kSmallRise = 0.01;
/// One tensor whose distribution no family fits; `distance` is empty when nothing could be fitted.
struct RefusedTensor {
  std::string layer, role, family;
  std::optional<double> n, distance, threshold;
};

/// A prediction that was made and failed.
struct FailedPrediction {
  std::string what, layer, role, format;  ///< what: "empirical", "fitted", "layer" or "output"
  double predicted_db = 0, measured_db = 0;
};

/// Verdicts of one kind of prediction, and how far it lies from the measurement in dB.
struct Tally {
  std::size_t holds = 0, undecided = 0, fails = 0;
  double median = 0, largest = 0;
  std::size_t compared() const { return holds + undecided + fails; }
};

/// Verdicts on predictions: the ones that the rows record, or by the same rules where they record
/// none. Points that differ only in their unit repeat tensors; each distinct tensor is counted
/// once.
struct Verdicts {
  std::size_t weight_tensors = 0, weight_accepted = 0;          ///< distinct layers
  std::size_t activation_tensors = 0, activation_accepted = 0;  ///< distinct layers
  Tally empirical, fitted, layers, outputs;                     ///< fitted: accepted fits only
  std::vector<RefusedTensor> refused;
  std::vector<FailedPrediction> failed;  ///< the furthest first
};

Verdicts judge_predictions(const std::vector<Record>&);

/// The unquantized row of the same network, data and seed; the first one; null if there is none.
const Record* find_baseline(const std::vector<Record>&, const Record& of);

/// The quantized row with the fewest mean bits whose top-1 lies inside its baseline's interval (of
/// a text: whose bits per character rise by less than kSmallRise); the more accurate wins ties.
const Record* cheapest_safe(const std::vector<Record>&);

/// The headline paragraph, sentence by sentence, in plain text.
std::vector<std::string> headline(const std::vector<Record>&, const Verdicts&);

/// Labels of the quantized configurations of which it holds (fails, is undecided by their paired
/// interval) that they lose less than kSmallLoss, or kSmallRise; each once, with the unit where a
/// label has several.
std::vector<std::string> labels_by_loss(const std::vector<Record>&, Verdict little);

/// A count with its thousands apart: "10,000"; "–" if there is none.
std::string grouped(const std::optional<double>& count);

/// "Rounding rne; overflow saturate; scale ..." over all quantized rows: what captions say about
/// the axes.
std::string conditions(const std::vector<Record>&);

}  // namespace numemu::experiments
