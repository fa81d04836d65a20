// Summaries of the rows in numbers and in sentences: losses, the cheapest safe point, which
// predictions held, the verdicts of a gate (experiments/engine/gate.hpp).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/report/record.hpp"
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

Verdicts judge_predictions(const std::vector<Record>&);

/// The unquantized row of the same network, data and seed; the first one; null if there is none.
const Record* find_baseline(const std::vector<Record>&, const Record& of);

/// Whether a row loses less than what is small of its measure, by its paired 95 % interval. None
/// where the row is not quantized or not measured, or no loss of the measure is called small.
Verdict loses_little(const Record&);

/// What tables of the rows are headed by: the measure of the first row that is not judged by top-1,
/// else top-1.
const Measure& measure_of(const std::vector<Record>&);

/// Rows that differ in nothing but their seed.
struct Configuration {
  /// The first row, named without its seed. Of several seeds: what they measure is the mean over
  /// them, without intervals, and absent where a seed lacks it.
  Record mean;
  std::vector<const Record*> rows;  ///< one for each seed

  /// What was lost against float32, in its own measure: the mean.
  std::optional<double> loss() const;
  /// Least and greatest loss of a seed.
  std::pair<double, double> losses() const;
};
/// All rows by configuration, in order of appearance; points to the rows.
std::vector<Configuration> configurations(const std::vector<Record>&);

/// Holds or fails only where each seed does.
Verdict loses_little(const Configuration&);

/// The quantized configuration with the fewest mean bits that surely loses less than the limit; the
/// more accurate wins ties, then the higher SQNR. Null if there is none.
const Configuration* cheapest_safe(const std::vector<Configuration>&);
/// The first row of it.
const Record* cheapest_safe(const std::vector<Record>&);

struct BestPoints {
  std::vector<const Configuration*> points;
  std::string left_out;  ///< a sentence, where some are
};
/// The best configurations of a sweep: those of which no other has as few bits and loses less, and
/// the cheapest safe one, fewest bits first; those that lose most are left out, down to `most`.
BestPoints best_points(const std::vector<Configuration>&, std::size_t most = 8);

/// The headline paragraph, sentence by sentence, in plain text, and its sentences on predictions.
std::vector<std::string> headline(const std::vector<Record>&);
std::vector<std::string> prediction_sentences(const Verdicts&);

/// Names of the configurations of a class, each once: the label where all its units agree ("int8 (2
/// units)" where the sweep has more), else with the unit.
std::vector<std::string> labels_by_loss(const std::vector<Configuration>&, Verdict little);
/// The units of those that labels_by_loss lists.
std::size_t compared_units(const std::vector<Configuration>&);

/// A note and the names of the rows that have it.
struct SharedNote {
  std::string text;
  std::vector<std::string> names;
  std::string kind = "other";  ///< policies::NoteKind; "other" in rows of earlier programs
};
/// The notes of all rows, each once, in order of appearance.
std::vector<SharedNote> shared_notes(const std::vector<Record>&);
/// The notes of each kind, in order of appearance. One whose kind is "other" stands alone.
std::vector<std::vector<SharedNote>> by_kind(const std::vector<SharedNote>&);
/// "int8 on exact; int4 on exact and 3 more": names hold commas.
std::string listed_names(const std::vector<std::string>& names, std::size_t most = 3);

/// A count with its thousands apart: "10,000"; "–" if there is none.
std::string grouped(const std::optional<double>& count);

/// "Rounding rne; overflow saturate; scale ..." over all quantized rows: the text of captions about
/// the axes.
std::string conditions(const std::vector<Record>&);

/// "pass", "fail", "undecided", "" for rows that were not judged.
std::string gate_verdict(const Record&);
/// The verdict, with the images that a decision needs where it is undecided.
std::string gate_words(const Record&);
/// "Gate top1 >= 0.99 float32 at 99 %, paired: 3 of 5 pass; 1 fail (...); 1 undecided (...).", one
/// sentence for each target; nothing without a gate. `unfinished` says which points are missing (""
/// for none): then the gate as a whole cannot pass.
std::vector<std::string> gate_sentences(const std::vector<Record>&,
                                        const std::string& unfinished = "");

}  // namespace numemu::experiments
