// One row of a sweep as a struct. The list of fields of each struct writes rows, reads them and
// checks them.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/analysis/verdict.hpp"
#include "formats/error.hpp"
#include "formats/storage/fields.hpp"

namespace numemu {
namespace experiments {

/// Both ends of an interval, empty where they are null.
struct Ends {
  std::optional<double> low, high;
  bool known() const { return low && high; }
  friend bool operator==(const Ends&, const Ends&) = default;
};

/// The same of numbers that stand beside others in a struct; NaN where they are null.
template <class Number>
struct EndsOf {
  Number &low, &high;
};
template <class Number>
EndsOf(Number&, Number&) -> EndsOf<Number>;

}  // namespace experiments

template <>
struct FieldCodec<experiments::Ends> {
  static constexpr const char* kExpected = "two numbers or two nulls";
  static Json write(const experiments::Ends&);
  static bool read(const Json&, experiments::Ends&);
};
template <class Number>
struct FieldCodec<experiments::EndsOf<Number>> {
  using Both = experiments::EndsOf<Number>;
  static constexpr const char* kExpected = FieldCodec<experiments::Ends>::kExpected;
  static bool is_none(const Both& ends) {
    return !std::isfinite(ends.low) || !std::isfinite(ends.high);
  }
  static Json write(const Both& ends) {
    return Json::array({json_of(ends.low), json_of(ends.high)});
  }
  static bool read(const Json& json, Both& ends) {
    experiments::Ends read;
    if (!FieldCodec<experiments::Ends>::read(json, read)) return false;
    ends.low = read.low.value_or(NAN);
    ends.high = read.high.value_or(NAN);
    return true;
  }
};
template <>
struct FieldCodec<Verdict> {
  static constexpr const char* kExpected = "a verdict";
  static constexpr Verdict kNone = Verdict::none;
  static Json write(Verdict);
  static bool read(const Json&, Verdict&);
};

}  // namespace numemu

namespace numemu::experiments {

using numemu::Member, numemu::UnknownMember;

/// The number with that many significant digits; null for NaN and infinities: float32 has no noise.
Member<double> row_number(double value, int digits = 6);
Ends row_ends(double low, double high);

/// What a run reads of its network (identity_of() in workbench.hpp). No path: moving a file
/// changes nothing.
struct NetworkIdentity {
  std::string net, weights;      ///< name and digest
  std::string graph;             ///< digest of a graph that is no reference network's
  std::string tuned_from;        ///< digest of the network before tuning
  std::string ranges;            ///< digest of the ranges of a checkpoint
  std::string weights_as_codes;  ///< how many are stored so; "" for none
  std::string trained;           ///< "under a recipe", "" otherwise

  static void fields(auto& self, const auto& visit) {
    visit("net", self.net, kIfAny);
    file_fields(self, visit);
  }
  static void file_fields(auto& self, const auto& visit) {
    visit("weights", self.weights, kIfAny);
    visit("graph", self.graph, kIfAny);
    visit("tuned_from", self.tuned_from, kIfAny);
    visit("ranges", self.ranges, kIfAny);
    visit("weights_as_codes", self.weights_as_codes, kIfAny);
    visit("trained", self.trained, kIfAny);
  }
};

/// What identifies a row: the configuration, the network and the data.
struct RowPoint : NetworkIdentity {
  std::string data;                  ///< the set's name; of a point of a sweep as it was given
  Member<std::int64_t> eval_images;  ///< samples of the test split
  Json recipe;                       ///< canonical, of one with stages the last
  Member<std::int64_t> stage;        ///< its number, where there are several
  Member<bool> fold_batch_norm;
  Member<bool> predictions;  ///< false where they are turned off
  std::vector<std::string> metrics;
  bool metrics_first = false;  ///< written before the recipe, as `eval --json` has them
  std::string images;          ///< digest of the data
  Member<std::int64_t> seed;   ///< of earlier programs

  bool empty() const { return net.empty() && data.empty() && recipe.is_null(); }

  static void fields(auto& self, const auto& visit) {
    visit("net", self.net, kIfAny | kNeeded);
    visit("data", self.data, kIfAny | kNeeded);
    visit("eval_images", self.eval_images);
    if (self.metrics_first) visit("metrics", self.metrics, kIfAny);
    visit("recipe", self.recipe, kIfAny);
    visit("stage", self.stage);
    visit("fold_batch_norm", self.fold_batch_norm);
    visit("predictions", self.predictions);
    if (!self.metrics_first) visit("metrics", self.metrics, kIfAny);
    NetworkIdentity::file_fields(self, visit);
    visit("images", self.images, kIfAny);
    visit("seed", self.seed);
  }
};

/// Effective stored bits of an element.
struct RowBits {
  Member<double> weight, activation, product_weight;

  static void fields(auto& self, const auto& visit) {
    visit("weight", self.weight, kNeeded);
    visit("activation", self.activation, kNeeded);
    visit("product_weight", self.product_weight);
  }
};

/// Accuracies are fractions, SQNR is in decibels.
struct RowMetrics {
  Member<double> top1;
  Member<std::int64_t> n;
  Member<Ends> ci95;
  Member<double> loss, baseline_top1, difference;
  Member<Ends> difference_ci95;
  Member<std::int64_t> gained, lost;  ///< right here alone, and in float32 alone
  Member<double> changed;             ///< share of answers that are other than float32's
  Member<double> perplexity;
  Member<double> bits_per_character, baseline_bits_per_character;
  Member<double> bits_per_token, baseline_bits_per_token;
  Member<double> sqnr_db, sqnr_error_db;
  Member<Ends> sqnr_ci95;
  Member<std::int64_t> sqnr_samples;
  Member<double> sqnr_without_mean_db, sqnr_gained_db, gain;

  static void fields(auto& self, const auto& visit) {
    visit("top1", self.top1, kNeeded | kExcusable);
    visit("n", self.n, kNeeded);
    visit("ci95", self.ci95, kNeeded | kExcusable);
    visit("loss", self.loss, kNeeded | kExcusable | kNullable);
    visit("baseline_top1", self.baseline_top1);
    visit("difference", self.difference);
    visit("difference_ci95", self.difference_ci95);
    visit("gained", self.gained);
    visit("lost", self.lost);
    visit("changed", self.changed);
    visit("perplexity", self.perplexity);
    visit("bits_per_character", self.bits_per_character);
    visit("baseline_bits_per_character", self.baseline_bits_per_character);
    visit("bits_per_token", self.bits_per_token);
    visit("baseline_bits_per_token", self.baseline_bits_per_token);
    visit("sqnr_db", self.sqnr_db);
    visit("sqnr_error_db", self.sqnr_error_db);
    visit("sqnr_ci95", self.sqnr_ci95);
    visit("sqnr_samples", self.sqnr_samples);
    visit("sqnr_without_mean_db", self.sqnr_without_mean_db);
    visit("sqnr_gained_db", self.sqnr_gained_db);
    visit("gain", self.gain);
    visit("not_finite", kGone);
  }
};

/// One figure of net::Score beside float32's (scores.hpp).
struct RowScore {
  std::string name;
  Member<double> value;
  Member<Ends> ci95;
  Member<double> baseline, difference;
  Member<Ends> difference_ci95;
  std::string resampled;              ///< what resamples draw; "" where samples are counted
  std::vector<std::string> exact;     ///< keys of intervals of samples that are all alike
  Member<std::int64_t> gained, lost;  ///< of a share that is counted
  std::string why_no_value, why_no_baseline;
  Member<double> predicted;  ///< and where the measured value is expected, at 95 %
  Member<Ends> predicted_ci95;

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name);
    visit("value", self.value);
    visit("ci95", self.ci95);
    visit("baseline", self.baseline);
    visit("difference", self.difference);
    visit("difference_ci95", self.difference_ci95);
    visit("resampled", self.resampled, kIfAny);
    visit("exact", self.exact, kIfAny);
    visit("gained", self.gained);
    visit("lost", self.lost);
    visit("why_no_value", self.why_no_value, kIfAny);
    visit("why_no_baseline", self.why_no_baseline, kIfAny);
    visit("predicted", self.predicted);
    visit("predicted_ci95", self.predicted_ci95);
  }
};

/// Which of the first samples the network got right (losses_file.hpp).
struct RowAnswers {
  std::uint64_t n = 0;
  std::string right;

  static void fields(auto& self, const auto& visit) {
    visit("n", self.n);
    visit("right", self.right);
  }
};

/// A distribution that fits a tensor, and the error that it predicts.
struct RowFit {
  std::string family;
  Member<double> ks, threshold;
  Member<bool> accepted;
  Member<double> db;
  Member<Verdict> verdict;

  static void fields(auto& self, const auto& visit) {
    visit("family", self.family);
    visit("ks", self.ks);
    visit("threshold", self.threshold);
    visit("accepted", self.accepted);
    visit("db", self.db);
    visit("verdict", self.verdict);
  }
};

/// The error of a quantized float32 tensor.
struct RowTensor {
  std::string layer, role, format;
  Member<std::int64_t> n;
  Member<double> measured_mse, measured_db, standard_error, empirical_mse, empirical_db;
  Member<Verdict> verdict;
  Member<RowFit> fitted;

  bool accepted() const { return fitted && fitted->accepted == true; }

  static void fields(auto& self, const auto& visit) {
    visit("layer", self.layer);
    visit("role", self.role);
    visit("format", self.format);
    visit("n", self.n);
    visit("measured_mse", self.measured_mse);
    visit("measured_db", self.measured_db);
    visit("standard_error", self.standard_error);
    visit("empirical_mse", self.empirical_mse);
    visit("empirical_db", self.empirical_db);
    visit("verdict", self.verdict);
    visit("fitted", self.fitted);
  }
};

/// Results of a layer whose register saturates, stops or wraps.
struct RowSaturation {
  std::int64_t sampled = 0, on_the_way = 0;  ///< computed again; saturated on the way, or wrapped
  Member<std::int64_t> results, at_end;      ///< all; ended at a register's end. None of wrapping

  static void fields(auto& self, const auto& visit) {
    visit("sampled", self.sampled);
    visit("on_the_way", self.on_the_way);
    visit("results", self.results);
    visit("at_end", self.at_end);
  }
};

/// The SQNR at the output of a layer, and shares of its operands.
struct RowLayer {
  std::string name, gemm, unit;
  Member<double> sqnr_db;
  Member<Ends> sqnr_ci95;
  Member<double> predicted_db;
  Member<Verdict> verdict;
  Member<double> overflow, underflow, invalid, saturated;
  Member<RowSaturation> saturated_counts;  ///< of all layers of a row where some have `saturated`
  std::string left_out;                    ///< why nothing is predicted

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name);
    visit("gemm", self.gemm, kIfAny);
    visit("unit", self.unit, kIfAny);
    visit("sqnr_db", self.sqnr_db);
    visit("sqnr_ci95", self.sqnr_ci95);
    visit("predicted_db", self.predicted_db);
    visit("verdict", self.verdict);
    visit("overflow", self.overflow);
    visit("underflow", self.underflow);
    visit("invalid", self.invalid);
    visit("saturated", self.saturated);
    visit("saturated_counts", self.saturated_counts);
    visit("left_out", self.left_out, kIfAny);
    visit("not_finite", kGone);
  }
};

/// A figure of the evaluation that is expected, and where the measured one is at 95 %.
struct RowExpected {
  Member<double> value;
  Member<Ends> ci95;
  Member<Verdict> verdict;

  static void fields(auto& self, const auto& visit) {
    visit("value", self.value);
    visit("ci95", self.ci95);
    visit("verdict", self.verdict);
  }
};

/// Holds in the interval (95 %) of what is expected, fails outside that of 99.9 % (normal), else
/// undecided; none without an interval or a figure.
Verdict expected_verdict(double expected, const Ends& ci95, double measured);

/// Without emulation, of some of the evaluated samples.
struct RowAccuracy {
  Member<std::int64_t> samples;
  Member<RowExpected> top1, changed, loss;

  static void fields(auto& self, const auto& visit) {
    visit("samples", self.samples);
    visit("top1", self.top1);
    visit("changed", self.changed);
    visit("loss", self.loss);
  }
};

struct RowPrediction {
  Member<std::int64_t> version;
  Member<double> sqnr_db, sqnr_error_db, sqnr_gained_db, gain;
  Member<Verdict> verdict;
  Member<RowAccuracy> accuracy;
  std::vector<RowTensor> tensors;
  std::string left_out, ignores;

  static void fields(auto& self, const auto& visit) {
    visit("version", self.version);
    visit("sqnr_db", self.sqnr_db);
    visit("sqnr_error_db", self.sqnr_error_db);
    visit("sqnr_gained_db", self.sqnr_gained_db);
    visit("gain", self.gain);
    visit("verdict", self.verdict);
    visit("accuracy", self.accuracy);
    visit("tensors", self.tensors, kNeeded);
    visit("left_out", self.left_out, kIfAny);
    visit("ignores", self.ignores, kIfAny);
  }
};

/// Numbers of which some are NaN or infinite.
struct LostCounts {
  std::int64_t of = 0, nan = 0, infinite = 0;
  std::int64_t lost() const { return nan + infinite; }

  static void fields(auto& self, const auto& visit) {
    visit("of", self.of);
    visit("nan", self.nan);
    visit("infinite", self.infinite);
  }
};
struct LostLayer {
  std::string name;
  std::int64_t of = 0, nan = 0, infinite = 0;
  std::int64_t inherited = 0;  ///< of samples whose operands were not finite before the product
  std::vector<std::string> causes;
  std::int64_t lost() const { return nan + infinite; }

  static void fields(auto& self, const auto& visit) {
    visit("name", self.name);
    visit("of", self.of);
    visit("nan", self.nan);
    visit("infinite", self.infinite);
    visit("inherited", self.inherited);
    visit("causes", self.causes);
  }
};
/// What some passes made NaN or infinite: the layers in the network's order.
struct LostNumbers {
  std::int64_t samples = 0;
  LostCounts outputs;
  std::vector<LostLayer> layers;

  static void fields(auto& self, const auto& visit) {
    visit("samples", self.samples);
    visit("outputs", self.outputs);
    visit("layers", self.layers);
  }
};
struct RowLost {
  Member<LostNumbers> test, reference;
  /// Those of the test samples, else those that SQNR is measured on; null without either.
  const LostNumbers* counted() const { return test ? &*test : reference ? &*reference : nullptr; }

  static void fields(auto& self, const auto& visit) {
    visit("test", self.test);
    visit("reference", self.reference);
  }
};

/// The file of the sums of each sample (losses_file.hpp).
struct RowLosses {
  std::string file, digest, score;

  static void fields(auto& self, const auto& visit) {
    visit("file", self.file);
    visit("digest", self.digest);
    visit("score", self.score);
  }
};

/// What a gate decided (gate.hpp).
struct RowGate {
  std::string target, metric;
  Member<double> value, required, margin;
  Member<Ends> margin_ci99;
  Member<std::int64_t> images, images_needed;
  std::string verdict;  ///< "pass", "fail", "undecided"

  static void fields(auto& self, const auto& visit) {
    visit("target", self.target);
    visit("metric", self.metric);
    visit("value", self.value);
    visit("required", self.required);
    visit("margin", self.margin);
    visit("margin_ci99", self.margin_ci99);
    visit("images", self.images);
    visit("images_needed", self.images_needed);
    visit("verdict", self.verdict);
  }
};

struct Row {
  RowPoint point;
  std::string key, recipe_name;
  RowBits bits;
  std::string baseline_has;  ///< quantizers of the network that is called float32
  RowMetrics metrics;
  std::vector<RowScore> scores;
  Member<RowAnswers> answers;
  RowPrediction predicted;
  std::vector<RowLayer> layers;
  std::vector<std::string> notes, note_kinds;  ///< kinds: policies::NoteKind, one for each note
  Member<std::int64_t> fixed_activations;      ///< layers whose activation has a scale of ranges
  Member<RowLost> not_finite;
  std::string version;
  Member<RowLosses> losses;
  Member<RowGate> gate;
  std::string digest;
  /// Of another program, or not of the type that this one expects: written as they were read.
  std::vector<UnknownMember> unknown;

  /// The score of that name; null where there is none.
  const RowScore* score(const std::string& name) const;
  /// Whether the point turns predictions off.
  bool turned_off() const { return point.predictions == false; }

  static void fields(auto& self, const auto& visit) {
    visit("point", self.point, kIfAny);
    visit("key", self.key, kIfAny);
    visit("recipe_name", self.recipe_name, kIfAny);
    visit("bits", self.bits);
    visit("baseline_has", self.baseline_has, kIfAny);
    visit("metrics", self.metrics);
    visit("scores", self.scores, kIfAny);
    visit("answers", self.answers);
    visit("predicted", self.predicted);
    visit("layers", self.layers, kNeeded | kOfNamed);
    visit("notes", self.notes, kIfAny);
    visit("note_kinds", self.note_kinds, kIfAny);
    visit("fixed_activations", self.fixed_activations);
    visit("not_finite", self.not_finite);
    visit("version", self.version, kIfAny);
    visit("losses", self.losses);
    visit("gate", self.gate);
    visit("digest", self.digest, kIfAny);
  }
};

/// json_of() with what is not known put back where it was.
Json to_json(const Row&);
/// The point of the row, as to_json() has it.
Json point_json(const Row&);

/// What can be read of a row: a member that is missing or of another type is empty, never an error.
Row read_row(const Json&);
/// Throws Error naming file, line and the first key of the schema (version 1) that is missing or of
/// another type; without a digest, which would reveal a renamed key, also a key that no earlier
/// program wrote. The error of a row of another numerics version names that.
Row checked_row(const Json&, const std::string& path, std::size_t number);

/// A line that no run wrote like this: not strict JSON (a repeated key, a zero byte), or with a
/// wrong digest.
class DamagedRow : public Error {
 public:
  using Error::Error;
};

/// A row without a digest, in one line of JSON, with its digest added as the last key: the SHA-256
/// of the canonical JSON (RFC 8785) of everything else.
std::string with_digest(const std::string& line);
/// The digest that with_digest() adds to the row.
std::string digest_of(const Row&);

/// A line that names its key and numerics version: enough to identify the row. Throws
/// DamagedRow, or Error, naming file and line. Rows of earlier programs have no digest.
Json parse_identity(const std::string& line, const std::string& path, std::size_t number);

}  // namespace numemu::experiments
