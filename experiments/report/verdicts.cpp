// Collects the verdict on every prediction in the rows: empirical, fitted, per layer and for the
// output.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/not_finite_text.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

using Number = std::optional<double>;

/// What the row records at `path`, else `own()`: rows of earlier versions record none.
template <class Own>
Verdict recorded_or(const Json& at, std::initializer_list<const char*> path, const Own& own) {
  const Verdict recorded = json_verdict(at, path);
  return is_judged(recorded) ? recorded : own();
}

/// Whether the recipe rounds the tensor at random, or in a way that this program does not know.
bool rounds_at_random(const Json& row, const std::string& layer, const std::string& role) {
  const Json* recipe = json_at(row, {"point", "recipe"});
  if (!recipe) return false;
  const std::optional<Rounding> rounding = role_rounding(*recipe, layer, role);
  return !rounding || rounding->stochastic();
}

/// Distinct tensors, each with its worst fit over the rows; keyed by role, then network and layer.
struct TensorFit {
  bool accepted = true, tried = false;
  RefusedTensor refused;
};
using TensorFits = std::map<std::pair<std::string, std::string>, TensorFit>;

void collect_fit(const std::string& net, const Json& tensor, TensorFits& fits) {
  const std::string layer = json_text(tensor, {"layer"}), role = json_text(tensor, {"role"});
  const bool accepted = json_text(tensor, {"fitted", "accepted"}) == "true";
  const Json* fitted = json_at(tensor, {"fitted"});
  const bool tried = fitted && fitted->is_object();
  const Number distance = json_number(tensor, {"fitted", "ks"});
  TensorFit& fit = fits[{role, net + '\n' + layer}];
  // Formats that no fit can predict are ignored for a tensor if others were tried.
  if (!tried && fit.tried) return;
  if (tried && !fit.tried) fit = TensorFit{true, true, {}};
  fit.accepted = fit.accepted && accepted;
  if (accepted) return;
  if (fit.refused.distance && distance && *fit.refused.distance >= *distance) return;
  fit.refused = {layer,
                 role,
                 json_text(tensor, {"fitted", "family"}),
                 json_number(tensor, {"n"}),
                 distance,
                 json_number(tensor, {"fitted", "threshold"})};
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

void judge_tensor(const Json& row, const Json& tensor, Counter& empirical, Counter& fitted) {
  const std::string layer = json_text(tensor, {"layer"}), role = json_text(tensor, {"role"});
  const std::string format = json_text(tensor, {"format"});
  const Number measured_mse = json_number(tensor, {"measured_mse"});
  const Number empirical_mse = json_number(tensor, {"empirical_mse"});
  const Number measured_db = json_number(tensor, {"measured_db"});
  if (measured_mse && empirical_mse) {
    const Verdict verdict = recorded_or(tensor, {"verdict"}, [&] {
      return empirical_verdict(*empirical_mse, *measured_mse, rounds_at_random(row, layer, role));
    });
    empirical.add(verdict, json_number(tensor, {"empirical_db"}), measured_db, layer, role, format);
  }
  const Number fitted_db = json_number(tensor, {"fitted", "db"});
  if (json_text(tensor, {"fitted", "accepted"}) != "true" || !fitted_db || !measured_db) return;
  const Verdict verdict = recorded_or(tensor, {"fitted", "verdict"},
                                      [&] { return fitted_verdict(*fitted_db, *measured_db); });
  fitted.add(verdict, fitted_db, measured_db, layer, role, format);
}

/// The sentence about the layer; of the output ("") the one about the first layer, its causes.
std::string why_not_finite(const Record& record, const std::string& layer) {
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
void judge_sqnr(const Json& at, std::initializer_list<const char*> path, const Number& predicted,
                const Number& measured, const std::string& layer, const Record& record,
                Counter& counter) {
  if (!predicted) return;
  if (measured) {
    const Verdict verdict =
        recorded_or(at, path, [&] { return layer_verdict(*predicted, *measured); });
    counter.add(verdict, predicted, measured, layer, "", record.name);
  } else if (json_verdict(at, path) == Verdict::fails ||
             (layer.empty() ? record.not_finite : not_finite_results(*record.row, layer) > 0)) {
    counter.add_not_finite(predicted, layer, record.name, why_not_finite(record, layer));
  }
}

}  // namespace

Verdicts judge_predictions(const std::vector<Record>& records) {
  Verdicts out;
  Counter empirical("empirical", out.empirical, out.failed);
  Counter fitted("fitted", out.fitted, out.failed);
  Counter layers("layer", out.layers, out.failed), outputs("output", out.outputs, out.failed);
  TensorFits fits;
  std::set<std::string> seen;
  for (const Record& record : records) {
    const Json& row = *record.row;
    judge_sqnr(row, {"predicted", "verdict"}, record.predicted_sqnr_db, record.sqnr_db, "", record,
               outputs);
    out.not_predicted += !record.predicted_sqnr_db && !record.left_out.empty() &&
                         (record.sqnr_db || record.not_finite);
    if (const Json* items = json_at(row, {"layers"}); items && items->is_array()) {
      for (const Json& layer : *items) {
        judge_sqnr(layer, {"verdict"}, json_number(layer, {"predicted_db"}),
                   json_number(layer, {"sqnr_db"}), json_text(layer, {"name"}), record, layers);
      }
    }
    const Json* tensors = json_at(row, {"predicted", "tensors"});
    if (!tensors || !tensors->is_array()) continue;
    for (const Json& tensor : *tensors) {
      if (!tensor.is_object()) continue;
      const std::string identity =
          record.net + '\n' + record.data + '\n' + tensor.dump(-1, Json::NotUtf8::replace);
      if (!seen.insert(identity).second) continue;
      collect_fit(record.net, tensor, fits);
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

}  // namespace numemu::experiments
