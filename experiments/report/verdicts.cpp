// Judges every prediction in the rows: empirical, fitted, per layer and for the output.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/report/findings.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

Spread spread_of(std::vector<double> differences) {
  Spread out;
  out.count = differences.size();
  if (differences.empty()) return out;
  std::sort(differences.begin(), differences.end());
  const std::size_t half = differences.size() / 2;
  out.median =
      differences.size() % 2 ? differences[half] : (differences[half - 1] + differences[half]) / 2;
  out.largest = differences.back();
  return out;
}

/// Whether any rule of the recipe rounds at random; then equality with the mean is not promised.
bool rounds_at_random(const Json& row) {
  const Json* recipe = json_at(row, {"point", "recipe"});
  return recipe &&
         recipe->dump(-1, ' ', false, Json::error_handler_t::replace).find("\"rounding\":\"sr") !=
             std::string::npos;
}

bool equal_mse(double predicted, double measured) {
  return std::abs(predicted - measured) <= kEmpiricalTolerance * std::abs(measured);
}

/// Distinct tensors by (role, layer), each with its worst fit over the rows.
struct TensorFit {
  bool accepted = true;
  RefusedTensor refused;
};

/// Keyed by role, then network and layer.
using TensorFits = std::map<std::pair<std::string, std::string>, TensorFit>;

void judge_fit(const std::string& net, const Json& tensor, TensorFits& fits) {
  const std::string layer = json_text(tensor, {"layer"}), role = json_text(tensor, {"role"});
  const bool accepted = json_text(tensor, {"fitted", "accepted"}) == "true";
  const std::optional<double> distance = json_number(tensor, {"fitted", "ks"});
  TensorFit& fit = fits[{role, net + '\n' + layer}];
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

void judge_tensor(const Json& tensor, bool random, Verdicts& out) {
  const std::optional<double> measured_mse = json_number(tensor, {"measured_mse"});
  const std::optional<double> empirical_mse = json_number(tensor, {"empirical_mse"});
  const std::optional<double> measured_db = json_number(tensor, {"measured_db"});
  const auto fail = [&](const char* what, const char* db_key, const char* parent) {
    const std::optional<double> db =
        parent ? json_number(tensor, {parent, db_key}) : json_number(tensor, {db_key});
    out.failed.push_back({what, json_text(tensor, {"layer"}), json_text(tensor, {"role"}),
                          json_text(tensor, {"format"}), db.value_or(NAN),
                          measured_db.value_or(NAN)});
  };
  if (measured_mse && empirical_mse && !random) {
    ++out.empirical;
    if (equal_mse(*empirical_mse, *measured_mse)) {
      ++out.empirical_held;
    } else {
      fail("empirical", "empirical_db", nullptr);
    }
  }
  const std::optional<double> fitted_db = json_number(tensor, {"fitted", "db"});
  if (json_text(tensor, {"fitted", "accepted"}) == "true" && fitted_db && measured_db) {
    ++out.fitted;
    if (std::abs(*fitted_db - *measured_db) <= kFittedToleranceDb) {
      ++out.fitted_held;
    } else {
      fail("fitted", "db", "fitted");
    }
  }
}

}  // namespace

Verdicts judge_predictions(const std::vector<Record>& records) {
  Verdicts out;
  TensorFits fits;
  std::set<std::string> seen;
  std::vector<double> layers, outputs;
  for (const Record& record : records) {
    const Json& row = *record.row;
    if (record.sqnr_db && record.predicted_sqnr_db) {
      outputs.push_back(std::abs(*record.sqnr_db - *record.predicted_sqnr_db));
    }
    if (const Json* items = json_at(row, {"layers"}); items && items->is_array()) {
      for (const Json& layer : *items) {
        const auto measured = json_number(layer, {"sqnr_db"});
        const auto predicted = json_number(layer, {"predicted_db"});
        if (measured && predicted) layers.push_back(std::abs(*measured - *predicted));
      }
    }
    const Json* tensors = json_at(row, {"predicted", "tensors"});
    if (!tensors || !tensors->is_array()) continue;
    const bool random = rounds_at_random(row);
    for (const Json& tensor : *tensors) {
      if (!tensor.is_object()) continue;
      const std::string identity = record.net + '\n' + record.data + '\n' +
                                   tensor.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (!seen.insert(identity).second) continue;
      judge_fit(record.net, tensor, fits);
      judge_tensor(tensor, random, out);
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
  std::sort(out.failed.begin(), out.failed.end(), [](const auto& a, const auto& b) {
    return std::abs(a.predicted_db - a.measured_db) > std::abs(b.predicted_db - b.measured_db);
  });
  out.layers = spread_of(std::move(layers));
  out.outputs = spread_of(std::move(outputs));
  return out;
}

}  // namespace numemu::experiments
