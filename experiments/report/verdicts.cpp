#include "experiments/report/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {
namespace {

using Number = std::optional<double>;

/// What the row records, else `own()`: rows of earlier versions record none.
template <class Own>
Verdict recorded_or(const Member<Verdict>& recorded, const Own& own) {
  return recorded && is_judged(*recorded) ? *recorded : own();
}

/// Whether the recipe rounds the tensor at random, or in a way that this program does not know.
bool rounds_at_random(const Row& row, const RowTensor& tensor) {
  if (row.point.recipe.is_null()) return false;
  const std::optional<Rounding> rounding =
      role_rounding(row.point.recipe, tensor.layer, tensor.role);
  return !rounding || rounding->stochastic();
}

/// Distinct tensors, each with its worst fit over the rows; keyed by role, then network and layer.
struct TensorFit {
  bool accepted = true, tried = false;
  RefusedTensor refused;
};
using TensorFits = std::map<std::pair<std::string, std::string>, TensorFit>;

void collect_fit(const std::string& net, const RowTensor& tensor, TensorFits& fits) {
  const bool accepted = tensor.accepted(), tried = tensor.fitted.has_value();
  const RowFit fitted = tensor.fitted.value_or(RowFit());
  TensorFit& fit = fits[{tensor.role, net + '\n' + tensor.layer}];
  // Formats that no fit can predict are ignored for a tensor if others were tried.
  if (!tried && fit.tried) return;
  if (tried && !fit.tried) fit = TensorFit{true, true, {}};
  fit.accepted = fit.accepted && accepted;
  if (accepted) return;
  if (fit.refused.distance && fitted.ks && *fit.refused.distance >= *fitted.ks) return;
  fit.refused = {tensor.layer, tensor.role, fitted.family, {}, fitted.ks, fitted.threshold};
  if (tensor.n) fit.refused.n = static_cast<double>(*tensor.n);
}

/// Counts verdicts of one kind and remembers its distances and failures.
class Counter {
 public:
  Counter(const char* what, Tally& tally, std::vector<FailedPrediction>& failed)
      : what_(what), tally_(tally), failed_(failed) {}

  void add(Verdict verdict, const Number& predicted, const Number& measured,
           const std::string& layer, const std::string& role, const std::string& format) {
    if (predicted && measured) distances_.push_back(std::abs(*predicted - *measured));
    tally_.add(verdict);
    if (verdict == Verdict::fails)
      failed_.push_back(
          {what_, layer, role, format, predicted.value_or(NAN), measured.value_or(NAN)});
  }

  /// Numbers that are not finite: the prediction has failed, by no distance.
  void add_not_finite(const std::optional<double>& predicted, const std::string& layer,
                      const std::string& format, const std::string& why) {
    tally_.add(Verdict::fails);
    ++tally_.not_finite;
    failed_.push_back({what_, layer, "", format, predicted.value_or(NAN), NAN, why});
  }

  void finish() {
    if (distances_.empty()) return;
    std::sort(distances_.begin(), distances_.end());
    const std::size_t half = distances_.size() / 2;
    tally_.median =
        distances_.size() % 2 ? distances_[half] : (distances_[half - 1] + distances_[half]) / 2;
    tally_.largest = distances_.back();
  }

 private:
  const char* what_;
  Tally& tally_;
  std::vector<FailedPrediction>& failed_;
  std::vector<double> distances_;
};

void judge_tensor(const Row& row, const RowTensor& t, Counter& empirical, Counter& fitted) {
  if (t.measured_mse && t.empirical_mse) {
    const Verdict verdict = recorded_or(t.verdict, [&] {
      return empirical_verdict(*t.empirical_mse, *t.measured_mse, rounds_at_random(row, t));
    });
    empirical.add(verdict, t.empirical_db, t.measured_db, t.layer, t.role, t.format);
  }
  if (!t.accepted() || !t.fitted->db || !t.measured_db) return;
  const Verdict verdict =
      recorded_or(t.fitted->verdict, [&] { return fitted_verdict(*t.fitted->db, *t.measured_db); });
  fitted.add(verdict, t.fitted->db, t.measured_db, t.layer, t.role, t.format);
}

/// The sentence about the layer; of the output ("") the one about the first layer, its causes.
std::string why_not_finite(const ReportRow& record, const std::string& layer) {
  const std::vector<std::string> sentences = not_finite_sentences(*record.row);
  if (layer.empty())
    return sentences.size() > 1 ? sentences[1] : sentences.empty() ? "" : sentences[0];
  for (const std::string& sentence : sentences) {
    if (sentence.starts_with(layer + ": ")) return sentence.substr(layer.size() + 2);
  }
  return "operands that were not finite before";
}

/// Measured dB are absent where numbers are not finite, and where nothing was lost: rows tell the
/// two apart by their verdict and by what they count.
void judge_sqnr(const Member<Verdict>& recorded, const Number& predicted, const Number& measured,
                const std::string& layer, const ReportRow& record, Counter& counter) {
  if (!predicted) return;
  if (measured) {
    const Verdict verdict =
        recorded_or(recorded, [&] { return layer_verdict(*predicted, *measured); });
    counter.add(verdict, predicted, measured, layer, "", record.name);
  } else if (recorded == Verdict::fails ||
             (layer.empty() ? record.not_finite : not_finite_results(*record.row, layer) > 0)) {
    counter.add_not_finite(predicted, layer, record.name, why_not_finite(record, layer));
  }
}

}  // namespace

Verdicts judge_predictions(const std::vector<ReportRow>& records) {
  Verdicts out;
  Counter empirical("empirical", out.empirical, out.failed);
  Counter fitted("fitted", out.fitted, out.failed);
  Counter layers("layer", out.layers, out.failed), outputs("output", out.outputs, out.failed);
  TensorFits fits;
  std::set<std::string> seen;
  for (const ReportRow& record : records) {
    const Row& row = *record.row;
    judge_sqnr(row.predicted.verdict, record.predicted_sqnr_db, record.sqnr_db, "", record,
               outputs);
    if (const Verdict verdict = record.judged.verdict(); verdict != Verdict::none)
      out.accuracy.add(verdict);
    out.not_predicted += !record.predicted_sqnr_db && !record.left_out.empty() &&
                         (record.sqnr_db || record.not_finite);
    for (const RowLayer& layer : row.layers)
      judge_sqnr(layer.verdict, layer.predicted_db, layer.sqnr_db, layer.name, record, layers);
    for (const RowTensor& tensor : row.predicted.tensors) {
      const std::string identity = row.point.net + '\n' + row.point.data + '\n' +
                                   json_of(tensor).dump(-1, Json::NotUtf8::replace);
      if (!seen.insert(identity).second) continue;
      collect_fit(row.point.net, tensor, fits);
      judge_tensor(row, tensor, empirical, fitted);
    }
  }
  for (const auto& [name, fit] : fits) {
    const bool weight = name.first == "weight";
    ++(weight ? out.weight_tensors : out.activation_tensors);
    if (fit.accepted) {
      ++(weight ? out.weight_accepted : out.activation_accepted);
    } else {
      out.refused.push_back(fit.refused);
    }
  }
  for (Counter* counter : {&empirical, &fitted, &layers, &outputs}) counter->finish();
  std::stable_sort(out.failed.begin(), out.failed.end(), [](const auto& a, const auto& b) {
    const auto distance = [](const FailedPrediction& f) {
      return std::isnan(f.measured_db) ? HUGE_VAL : std::abs(f.predicted_db - f.measured_db);
    };
    return distance(a) > distance(b);
  });
  return out;
}

std::string gate_verdict(const ReportRow& r) { return r.row->gate ? r.row->gate->verdict : ""; }

namespace {

/// "1.7 million", "15,000": two digits, as many as an estimate has, and not fewer samples.
std::string rough(double samples) {
  constexpr double kMillion = 1e6, kTwoDigits = 100;
  if (samples < kTwoDigits) return grouped(samples);
  const double unit = portable::pow(10, std::floor(portable::log10(samples)) - 1);
  const double round = std::ceil(samples / unit) * unit;
  return round < kMillion ? grouped(round) : fmt::format("{:g} million", round / kMillion);
}

/// The margin's interval is not known, as of one sample.
bool has_no_interval(const RowGate& gate) {
  return !gate.margin_ci99 || !gate.margin_ci99->known();
}

std::optional<double> needed_by(const RowGate& gate) {
  return gate.images_needed ? std::optional(static_cast<double>(*gate.images_needed))
                            : std::nullopt;
}

std::string target_of(const ReportRow& r) { return r.row->gate ? r.row->gate->target : ""; }

}  // namespace

std::string gate_words(const ReportRow& r) {
  const std::string verdict = gate_verdict(r);
  if (verdict != "undecided") return verdict;
  const std::optional<double> needed = needed_by(*r.row->gate);
  return needed ? fmt::format("undecided, needs about {}", rough(*needed)) : verdict;
}

std::vector<std::string> gate_sentences(const std::vector<ReportRow>& records,
                                        const std::string& unfinished) {
  std::vector<std::string> targets, out;
  for (const ReportRow& r : records) {
    const std::string target = target_of(r);
    if (!target.empty() && std::ranges::find(targets, target) == targets.end())
      targets.push_back(target);
  }
  for (const std::string& target : targets) {
    std::vector<std::string> failed, open;
    std::size_t judged = 0, passed = 0, decidable = 0, unknown = 0;
    double needed = 0;
    for (const ReportRow& r : records) {
      if (target_of(r) != target) continue;
      const std::string verdict = gate_verdict(r);
      ++judged;
      passed += verdict == "pass";
      if (verdict == "fail") failed.push_back(r.name);
      if (verdict != "undecided") continue;
      open.push_back(r.name);
      const std::optional<double> of_row = needed_by(*r.row->gate);
      decidable += of_row.has_value();
      unknown += !of_row && has_no_interval(*r.row->gate);
      needed = std::max(needed, of_row.value_or(0));
    }
    std::string text = fmt::format("Gate {} at 99 %{}: {} of {} pass", target,
                                   target.ends_with("float32") ? ", paired" : "", passed, judged);
    if (!failed.empty()) text += fmt::format("; {} fail ({})", failed.size(), listed_names(failed));
    if (!open.empty()) {
      text += fmt::format("; {} undecided ({})", open.size(), listed_names(open));
      if (decidable > 0) text += fmt::format(", about {} samples would decide", rough(needed));
      const std::size_t never = open.size() - decidable - unknown;  // whose margin is 0
      if (decidable > 0 && decidable < open.size()) text += fmt::format(" {} of them", decidable);
      if (unknown > 0)
        text += unknown < open.size()
                    ? fmt::format(", {} without an interval, which needs more samples", unknown)
                    : ", without an interval, which needs more samples";
      if (never == open.size()) text += ", which more samples would not decide";
    }
    if (!unfinished.empty())
      text += fmt::format("; {}{}", unfinished,
                          failed.empty() ? ", so the gate as a whole is undecided" : "");
    out.push_back(text + ".");
  }
  return out;
}

}  // namespace numemu::experiments
