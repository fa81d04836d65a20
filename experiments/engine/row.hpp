// One row of a sweep as a struct. Each member is declared once more, with its key, in the visitor
// of row.cpp: that writes rows, reads them and checks them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/analysis/verdict.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// A member that a row may lack. Rows tell `null`, a figure that has no number, from a key that is
/// not there, which the program that wrote the row did not know.
template <class T>
struct Member : std::optional<T> {
  using std::optional<T>::optional;
  static Member null() {
    Member member;
    member.is_null = true;
    return member;
  }
  bool written() const { return this->has_value() || is_null; }

  bool is_null = false;
};

/// The number with that many significant digits; null for NaN and infinities: float32 has no noise.
Member<double> row_number(double value, int digits = 6);

/// Both ends of an interval, empty where they are null.
struct Ends {
  std::optional<double> low, high;
  bool known() const { return low && high; }
  friend bool operator==(const Ends&, const Ends&) = default;
};
Ends row_ends(double low, double high);

/// Effective stored bits of an element.
struct RowBits {
  Member<double> weight, activation, product_weight;
};

/// Accuracies are fractions, SQNR is in decibels.
struct RowMetrics {
  Member<double> top1;
  Member<std::int64_t> n;
  Member<Ends> ci95;
  Member<double> loss, baseline_top1, difference;
  Member<Ends> difference_ci95;
  Member<std::int64_t> gained, lost;  ///< right here alone, and in float32 alone
  Member<double> perplexity;
  Member<double> bits_per_character, baseline_bits_per_character;
  Member<double> bits_per_token, baseline_bits_per_token;
  Member<double> sqnr_db, sqnr_error_db;
  Member<Ends> sqnr_ci95;
  Member<std::int64_t> sqnr_samples;
  Member<double> sqnr_without_mean_db, sqnr_gained_db, gain;
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
};

/// Which of the first samples the network got right (losses_file.hpp).
struct RowAnswers {
  std::uint64_t n = 0;
  std::string right;
};

/// A distribution that fits a tensor, and the error that it predicts.
struct RowFit {
  std::string family;
  Member<double> ks, threshold;
  Member<bool> accepted;
  Member<double> db;
  Member<Verdict> verdict;
};

/// The error of a quantized float32 tensor.
struct RowTensor {
  std::string layer, role, format;
  Member<std::int64_t> n;
  Member<double> measured_mse, measured_db, standard_error, empirical_mse, empirical_db;
  Member<Verdict> verdict;
  Member<RowFit> fitted;

  bool accepted() const { return fitted && fitted->accepted == true; }
};

/// The SQNR at the output of a layer, and shares of its operands.
struct RowLayer {
  std::string name, gemm, unit;
  Member<double> sqnr_db;
  Member<Ends> sqnr_ci95;
  Member<double> predicted_db;
  Member<Verdict> verdict;
  Member<double> overflow, underflow, invalid, saturated;
  std::string left_out;  ///< why nothing is predicted
};

struct RowPrediction {
  Member<std::int64_t> version;
  Member<double> sqnr_db, sqnr_error_db, sqnr_gained_db, gain;
  Member<Verdict> verdict;
  std::vector<RowTensor> tensors;
  std::string left_out, ignores;
};

/// Numbers of which some are NaN or infinite.
struct LostCounts {
  std::int64_t of = 0, nan = 0, infinite = 0;
  std::int64_t lost() const { return nan + infinite; }
};
struct LostLayer {
  std::string name;
  std::int64_t of = 0, nan = 0, infinite = 0;
  std::int64_t inherited = 0;  ///< of samples whose operands were not finite before the product
  std::vector<std::string> causes;
  std::int64_t lost() const { return nan + infinite; }
};
/// What some passes made NaN or infinite: the layers in the network's order.
struct LostNumbers {
  std::int64_t samples = 0;
  LostCounts outputs;
  std::vector<LostLayer> layers;
};
struct RowLost {
  Member<LostNumbers> test, reference;
  /// Those of the test samples, else those that SQNR is measured on; null without either.
  const LostNumbers* counted() const { return test ? &*test : reference ? &*reference : nullptr; }
};

/// The file of the sums of each sample (losses_file.hpp).
struct RowLosses {
  std::string file, digest, score;
};

/// What a gate decided (gate.hpp).
struct RowGate {
  std::string target, metric;
  Member<double> value, required, margin;
  Member<Ends> margin_ci99;
  Member<std::int64_t> images, images_needed;
  std::string verdict;  ///< "pass", "fail", "undecided"
};

/// A member that no struct has, under the path of keys that leads to it ("layers", "[0]", "key").
struct UnknownMember {
  std::vector<std::string> path;
  Json value;
};

struct Row {
  Json point;  ///< what identifies the row: the configuration, the network and the data
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
  /// Whether the point's "predictions" is false.
  bool turned_off() const;
};

Json to_json(const Row&);
Json to_json(const RowMetrics&);
Json to_json(const RowScore&);
Json to_json(const std::vector<RowScore>&);
Json to_json(const RowPrediction&);
Json to_json(const RowTensor&);
Json to_json(const std::vector<RowLayer>&);
Json to_json(const LostNumbers&);

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
/// The same of a row.
std::string digest_of(const Row&);

/// A line that names its key and numerics version: enough to identify the row. Throws
/// DamagedRow, or Error, naming file and line. Rows of earlier programs have no digest.
Json parse_identity(const std::string& line, const std::string& path, std::size_t number);

}  // namespace numemu::experiments
