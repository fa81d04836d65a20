// The figure that a row is judged by: top-1, bits per character or token, or the metric that
// --metric or the data set chose.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "emu/net/train/score.hpp"
#include "experiments/engine/row.hpp"
#include "formats/analysis/verdict.hpp"

namespace numemu::experiments {

/// What a row may be judged by: a score, or the bits of a character, which only rows of texts have.
struct Measure : net::ShownAs {
  std::string name;  ///< of the score (emu/net/train/score.hpp)

  bool is_top1() const;
  /// Of a character or a token.
  bool is_bits() const;
  /// "98.00 % top-1"
  std::string text(double value) const;
  /// A loss with its unit: "0.5 points", "1 % of the mean squared error".
  std::string loss_text(double loss) const;
};

/// What a row has of its measure, as fractions. Absent numbers are empty.
struct JudgedFigure {
  const Measure* measure = nullptr;  ///< never null in what judged_of() gives
  std::optional<double> value, low, high, baseline;
  std::optional<double> difference, difference_low, difference_high;
  std::optional<double> predicted, predicted_low, predicted_high;

  Verdict verdict() const;  ///< expected_verdict()

  /// What was lost against float32; above 0 is worse. Of a measure without small losses the figure
  /// itself.
  std::optional<double> loss() const;
  /// Its interval, the smaller end first.
  std::optional<std::pair<double, double>> loss_interval() const;
};

/// The measure of a row of schema version 1 and its figures: the first of the point's "metrics"; of
/// a text bits per character or token; else the first score of the row; else top-1.
JudgedFigure judged_of(const Row&);

}  // namespace numemu::experiments
