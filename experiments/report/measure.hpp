// The figure that a row is judged by: top-1, bits per character or token, or the metric that
// --metric or the data set chose.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// One figure of a task: how it is shown, and which loss of it people call small.
struct Measure {
  const char* name;    ///< of the score (emu/net/train/score.hpp)
  const char* title;   ///< of a column: "Top-1, %"
  const char* words;   ///< in a sentence: "top-1"
  const char* prefix;  ///< between a number and the words: "%"
  const char* unit;    ///< of a change: "points"
  double factor;       ///< of numbers that are shown: 100 for shares
  int digits;
  bool falls = false;     ///< less is better
  bool relative = false;  ///< a loss is a share of float32's figure
  /// Losses that count as small and as hopeless, before `factor`; 0: no loss is usually called so,
  /// and nothing is judged.
  double small = 0, hopeless = 0;

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
