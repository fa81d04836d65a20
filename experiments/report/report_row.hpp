// A row of a sweep with what tables, exports and charts derive from it: roles, names, the figure by
// which it is judged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/row.hpp"
#include "experiments/report/measure.hpp"
#include "formats/analysis/verdict.hpp"
#include "formats/rounding.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// How one role (weights or activations) is stored. Empty texts were absent from the row.
struct ReportRole {
  bool quantized = false;  ///< false: float32, and every other field is as constructed
  std::string format = "float32", rounding, overflow, scale, granularity, axis, mask;
  /// "float", "int", "block" for block formats, "other" for formats that this program has not.
  std::string family = "float";
  std::string element;  ///< of a block format, whose bits these are
  std::optional<int> bits = 32, exponent_bits = 8, mantissa_bits = 23;

  friend bool operator==(const ReportRole&, const ReportRole&) = default;
};

/// Decibels of an SQNR that the mean of the outputs may make before both figures are shown.
inline constexpr double kMeanHides = 3;

/// Absent, null and non-finite numbers are empty. Accuracies are fractions, SQNR in dB.
struct ReportRow {
  const Row* row = nullptr;  ///< never null in what report_rows() gives
  std::size_t position = 0;  ///< place in the sweep, from 0
  std::string folder;        ///< of the row, where it names files
  std::optional<double> seed;
  ReportRole weight, activation;
  /// Where nothing but one rule of `layers` quantizes: its glob and its roles.
  std::string only_in;
  ReportRole layer_weight, layer_activation;
  std::string overrides;  ///< layers whose formats or units are not the base's: "5 layers mxfp8"
  std::string unit, dgrad_unit, wgrad_unit;
  std::string other;  ///< further quantized roles and per-layer rules, in words; usually empty
  /// Names unique among the rows (names.hpp): `label` on its unit, `name` among all. `settings`:
  /// what varies over the rows and is in none of the fields above, in words.
  std::string label, name, settings;
  JudgedFigure judged = judged_of({});  ///< by which rows are compared and called safe
  /// Of a mean over seeds (configurations.hpp) other ones than the row's, as those of `judged`.
  std::optional<double> sqnr_db, sqnr_error_db, predicted_sqnr_db;
  std::optional<double> difference;  ///< of top-1, also where the row has both figures alone
  std::optional<double> perplexity;  ///< without the rounding to float32 where the row has it
  std::optional<double> gained_db, predicted_gained_db;  ///< SQNR at the best gain, or +inf
  std::string left_out;     ///< why no SQNR is predicted, if the row has a reason
  bool not_finite = false;  ///< some outputs are NaN or infinite (is_not_finite())

  bool quantized() const { return weight.quantized || activation.quantized || !other.empty(); }
  /// The network as it is: nothing is quantized and nothing differs.
  bool is_float32() const { return !quantized() && !sqnr_db && !not_finite; }
  /// A tuned checkpoint: SQNR compares with the tuned weights, accuracy with the network before.
  bool is_tuned() const;
  /// What accuracy is compared with itself: float32, of no tuned checkpoint.
  bool is_baseline() const { return is_float32() && !is_tuned(); }
  /// The 95 % interval of sqnr_db, where the row has its standard error.
  std::optional<std::pair<double, double>> sqnr_interval() const;
  /// The SQNR without the mean, where the mean makes more than kMeanHides dB of sqnr_db.
  std::optional<double> hidden_by_mean() const;
  /// Mean of weight and activation bits, or the one that is known.
  std::optional<double> mean_bits() const;
  /// "float", "int", "block", "mixed" (weights and activations of different families), "other".
  std::string family() const;
  /// "int8", or "int4 / int8" (weights / activations) where they differ.
  std::string formats() const;
  /// The name of the recipe if it has one, else the formats; "mxfp4 in conv1" where one rule of
  /// `layers` alone quantizes; "mxfp4 + 5 layers mxfp8_e4m3" where layers differ from the rest.
  /// Rows may share it.
  std::string short_label() const;
  /// not_finite_sentences() and notes, each list as one text; "" for none.
  std::string not_finite_words() const;
  std::string all_notes() const;
  /// A prediction is made, but not of what its unit's arithmetic adds.
  bool unit_ignored() const;
  /// The measured SQNR of the output is surely off what was predicted.
  bool sqnr_missed() const;
};

/// The rows of a folder for reports, in their order; they point to `rows`. Without the folder,
/// files that rows name are not read.
std::vector<ReportRow> report_rows(const std::vector<Row>& rows, const std::string& folder = "");

/// "e4m3fn" for "float8_e4m3fn": the name without the part that the chart shows.
std::string short_format(const std::string& name);
/// "conv1", and "all layers" for "*".
std::string layer_words(const std::string& glob);
/// A role's scale rule as it is shown: "mse" is what mse(17) was called when the row was made.
std::string shown_scale(const std::string& rule);
/// Whether predictions leave out what a unit of this name adds: all units but those whose sums are
/// float32's or better.
bool prediction_ignores(const std::string& unit);
/// Further quantized roles and the rules of `layers` of a canonical recipe, in words.
std::string other_rules(const Json& recipe);
/// The rules of its `layers`, every key of theirs.
std::string layer_rules(const Json& recipe);
/// How a layer rounds a role under a canonical recipe: by its rule that matches last, else by the
/// base. Nothing for a rounding that this program has not.
std::optional<Rounding> role_rounding(const Json& recipe, const std::string& layer,
                                      const std::string& role);
/// A unit's name, or its description where it has none.
std::string unit_words(const Json* unit);
/// The last parts of a unit's name: "f32.sequential" for "neutral.f32.sequential".
std::string short_unit(const std::string& name);

/// The value at a path of object keys, or null if any is absent.
const Json* json_at(const Json& value, std::initializer_list<const char*> path);
/// A finite number at `path`.
std::optional<double> json_number(const Json& value, std::initializer_list<const char*> path);
/// A text at `path`; numbers and booleans as JSON writes them; "" if absent or null.
std::string json_text(const Json& value, std::initializer_list<const char*> path);

/// Whether some row may have predictions: then tables and reports have columns for them. Of float32
/// nothing is predicted.
bool any_predictions(const std::vector<ReportRow>&);

/// The rows as if their points had turned predictions off; their keys stay.
std::vector<Row> without_predictions(std::vector<Row> rows);

/// Names of all scores but top-1, which has columns of its own, in the order of the rows.
std::vector<std::string> score_columns(const std::vector<ReportRow>&);
/// "0.712 [0.7, 0.724]"; "" where it has none.
std::string score_text(const ReportRow&, const std::string& name);

/// "no window's figure differs from float32; at 95 % at most 24.7 % of blocks of 4 windows do
/// (Clopper-Pearson)", of a score of which no resample differs; "" of others, of `auc`, and of 0
/// samples. The exact interval of such a difference supposes that a window that differs does so in
/// every target.
std::string none_differs(const RowScore&, std::int64_t samples);

/// Whether some outputs are NaN or infinite: the row counts them (`not_finite`), or, in rows that
/// do not count, its loss is null.
bool is_not_finite(const Row&);

/// "5,000 of 5,000 outputs are NaN (500 test samples)" and "conv2: 1,200 of 4,000 results infinite:
/// accumulator overflow (...)": the outputs, then each layer where such numbers arise, then those
/// that pass them on. Empty for rows that are finite. One sentence each, without a full stop.
std::vector<std::string> not_finite_sentences(const Row&);

/// NaN and infinite results of that layer's products; 0 where the row has none or does not count.
double not_finite_results(const Row&, const std::string& layer);

}  // namespace numemu::experiments
