#include "cli/noise_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "cli/report_files.hpp"
#include "cli/table.hpp"
#include "experiments/predict/left_out.hpp"
#include "experiments/report/not_finite_text.hpp"
#include "experiments/report/record.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {

std::string decibels(const Json& value) { return number_text(value, "{:.2f}"); }

namespace {

/// "inf" without noise, "-" without a figure.
std::string decibels(const std::optional<double>& db) {
  return db ? fmt::format("{:.2f}", *db) : "-";
}

}  // namespace

void print_noise(const Json& row, const std::string& of_noise, const std::string& of_counts) {
  // Without any, the reasons are below the table, or nothing is quantized.
  const Json &metrics = row["metrics"], &predicted = row["predicted"];
  bool predictions = false, noise = false;
  std::vector<std::vector<std::string>> units;
  for (const Json& layer : row["layers"]) {
    predictions = predictions || layer["predicted_db"].is_number();
    noise = noise || layer["sqnr_db"].is_number() ||
            experiments::not_finite_results(row, layer["name"]) > 0;
    units.push_back({layer["name"], layer["unit"]});
  }
  if (!noise && !predictions) {
    // Equal outputs have a gain of 1; beside NaN and infinities there is none.
    const bool equal = metrics.value("gain", Json(1.0)) == Json(1.0);
    fmt::print("{}{}\n", text_table({"layer", "unit"}, units),
               equal ? "no layer differs from the reference (float32)"
                     : "no SQNR of layers: the samples that measure noise give NaN or infinite "
                       "numbers");
    return;
  }
  std::vector<const char*> counts = {"overflow", "underflow", "invalid"};
  const bool saturated = std::ranges::any_of(
      row["layers"], [](const Json& layer) { return layer.contains("saturated"); });
  if (saturated) counts.push_back("saturated");
  std::vector<std::vector<std::string>> layers;
  bool starred = false;
  std::map<std::string, std::vector<std::string>> left_out;  // reason -> layers
  for (const Json& layer : row["layers"]) {
    const bool lost =
        layer["sqnr_db"].is_null() && experiments::not_finite_results(row, layer["name"]) > 0;
    const bool star =
        layer["predicted_db"].is_number() && experiments::prediction_ignores(layer["unit"]);
    starred = starred || star;
    if (layer.contains("left_out") && layer["left_out"].is_string())
      left_out[layer["left_out"]].push_back(layer["name"]);
    layers.push_back({layer["name"], layer["unit"], lost ? "NaN" : decibels(layer["sqnr_db"]),
                      interval_text(layer.value("sqnr_ci95", Json()), "{:.2f}")});
    if (predictions) {
      layers.back().push_back(decibels(layer["predicted_db"]) + (star ? "*" : ""));
      layers.back().push_back(layer["verdict"].is_string() ? layer["verdict"].get<std::string>()
                                                           : "-");
    }
    for (const char* count : counts)
      layers.back().push_back(number_text(layer.value(count, Json(0.0)), "{:.2e}"));
  }
  std::vector<std::string> header = {"layer", "unit", "SQNR dB", "95 %"};
  if (predictions) header.insert(header.end(), {"predicted", "verdict"});
  header.insert(header.end(), counts.begin(), counts.end());
  fmt::print(
      "{}SQNR{} on {}; overflow, underflow and invalid: shares of the operands on {}{}\n",
      text_table(header, layers), predictions ? " and predictions" : "", of_noise, of_counts,
      saturated ? "; saturated: of the results looked at, those whose register overflowed" : "");
  if (starred) fmt::print("{}\n", kUnitLeftOut);
  if (metrics["sqnr_db"].is_number()) {
    const bool known = predicted["sqnr_db"].is_number();
    const char* star = predicted.contains("ignores") ? "*" : "";
    const Json ends = metrics.value("sqnr_ci95", Json()),
               verdict = predicted.value("verdict", Json());
    fmt::print("output: SQNR {} dB{}{}{}\n", decibels(metrics["sqnr_db"]),
               ends.is_array()
                   ? fmt::format(", 95 % interval {} of {} samples", interval_text(ends, "{:.2f}"),
                                 metrics.value("sqnr_samples", Json()).dump())
                   : "",
               known ? fmt::format(", predicted {}{}", decibels(predicted["sqnr_db"]), star) : "",
               known && verdict.is_string() ? ": " + verdict.get<std::string>() : "");
    const experiments::Record record = experiments::read_records({row}).at(0);
    if (const auto centred = record.hidden_by_mean())
      fmt::print("output without its mean over samples: SQNR {:.2f} dB; the mean makes the rest\n",
                 *centred);
    fmt::print("output scaled by its best gain, {}: {} dB{}; a common gain changes no decision\n",
               decibels(metrics["gain"]), decibels(record.gained_db),
               known ? fmt::format(", predicted {}{} at {}", decibels(record.predicted_gained_db),
                                   star, decibels(predicted["gain"]))
                     : "");
  }
  for (const auto& [reason, names] : left_out)
    fmt::print("no prediction of {}: {}\n", joined(names, ", "), reason);
}

}  // namespace numemu::cli
