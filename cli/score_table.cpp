#include "cli/score_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "api/text/table.hpp"
#include "cli/report_files.hpp"
#include "experiments/predict/left_out.hpp"
#include "experiments/predict/version.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "policies/numerics/overflow_sample.hpp"

namespace numemu::cli {

void print_scores(const std::vector<experiments::RowScore>& scores, std::int64_t samples) {
  std::vector<std::vector<std::string>> lines;
  for (const experiments::RowScore& score : scores) {
    lines.push_back({score.name, number_text(score.value, "{:.6g}"),
                     interval_text(score.ci95, "{:.6g}"), number_text(score.baseline, "{:.6g}"),
                     number_text(score.difference, "{:+.4g}"),
                     experiments::none_differs(score, samples).empty()
                         ? interval_text(score.difference_ci95, "{:+.4g}")
                         : "none differs"});
  }
  std::vector<std::string> counted;
  std::string intervals;
  for (const experiments::RowScore& score : scores) {
    if (!score.resampled.empty())
      intervals = "bootstrap of " + score.resampled;
    else
      counted.push_back(score.name);
  }
  if (!counted.empty())
    intervals +=
        fmt::format("{}counts of samples{}", intervals.empty() ? "" : "; ",
                    intervals.empty() ? "" : fmt::format(" for {}", joined(counted, ", ")));
  fmt::print("{}95 %: {}; differences are paired\n",
             api::text_table({"metric", "value", "95 %", "float32", "difference", "95 %"}, lines),
             intervals);
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // sentences and metrics
  for (const experiments::RowScore& score : scores) {
    const std::string sentence = experiments::none_differs(score, samples);
    if (sentence.empty()) continue;
    if (alike.empty() || alike.back().first != sentence) alike.push_back({sentence, {}});
    alike.back().second.push_back(score.name);
  }
  for (const auto& [sentence, names] : alike) fmt::print("{}: {}\n", joined(names, ", "), sentence);
  for (const experiments::RowScore& score : scores) {
    for (const std::string& which : score.exact) {
      const bool change = which == "difference_ci95";
      if (change && !experiments::none_differs(score, samples).empty()) continue;
      fmt::print("{}: {}, so the interval{} is that of 0 exceptions in as many (Clopper-Pearson)\n",
                 score.name,
                 !change ? "all samples have the same figure"
                 : score.difference == 0.0
                     ? "no sample's figure differs from float32"
                     : "every sample's figure differs from float32 by the same",
                 change ? " of the difference" : "");
    }
    for (const auto& [why, whose] :
         {std::pair(&score.why_no_value, ""), {&score.why_no_baseline, " of float32"}}) {
      if (!why->empty()) fmt::print("{}{}: {}\n", score.name, whose, *why);
    }
  }
  fmt::print("\n");
}

namespace {

using experiments::Member, experiments::Row, experiments::RowLayer;

struct Count {
  const char* name;
  Member<double> RowLayer::*share;
};

/// Results whose register overflowed, of all layers of a row where some did.
class Saturated {
 public:
  explicit Saturated(const Row& row) {
    for (const RowLayer& layer : row.layers) {
      if (!layer.saturated_counts) continue;
      (layer.saturated_counts->results ? stops_ : wraps_) = true;
    }
  }
  bool any() const { return stops_ || wraps_; }
  void add_titles(std::vector<std::string>& titles) const {
    if (any()) titles.emplace_back(words());
    if (stops_) titles.emplace_back("at an end");
  }
  void add_cells(const RowLayer& layer, std::vector<std::string>& cells) const {
    using policies::counted_share;
    const Member<experiments::RowSaturation>& counts = layer.saturated_counts;
    if (any())
      cells.push_back(
          counts && counts->sampled > 0 ? counted_share(counts->on_the_way, counts->sampled) : "-");
    if (stops_)
      cells.push_back(counts && counts->results
                          ? counted_share(counts->at_end.value_or(0), *counts->results)
                          : "-");
  }
  std::string legend() const {
    if (!any()) return "";
    return fmt::format(
        "; {}: of the results computed again{}", words(),
        stops_ ? fmt::format("; at an end: of all results, those that {}", policies::kAtEndWords)
               : "");
  }

 private:
  const char* words() const {
    return !wraps_   ? "saturated on the way"
           : !stops_ ? "wrapped"
                     : "saturated on the way or wrapped";
  }
  bool stops_ = false, wraps_ = false;
};

}  // namespace

std::string decibels(const std::optional<double>& db) { return number_text(db, "{:.2f}"); }

/// With two digits of its distance from 1, where that is small.
std::string gain_text(const std::optional<double>& gain) {
  constexpr double kNear = 0.005, kNearest = 1e-8;
  const double distance = gain ? std::fabs(*gain - 1) : 0;
  if (!(distance < kNear) || distance < kNearest) return number_text(gain, "{:.2f}");
  return fmt::format("{:.{}f}", *gain, 1 - static_cast<int>(std::floor(portable::log10(distance))));
}

void print_noise(const Row& row, const std::string& of_noise, const std::string& of_counts) {
  // Without any, the reasons are below the table, or nothing is quantized.
  bool predictions = false, noise = false;
  std::vector<std::vector<std::string>> units;
  for (const RowLayer& layer : row.layers) {
    predictions = predictions || layer.predicted_db;
    noise = noise || layer.sqnr_db || experiments::not_finite_results(row, layer.name) > 0;
    units.push_back({layer.name, layer.unit});
  }
  if (!noise && !predictions) {
    // Equal outputs have a gain of 1; beside NaN and infinities there is none.
    const Member<double>& gain = row.metrics.gain;
    const bool equal = !gain.written() || gain == 1.0;
    fmt::print("{}{}\n", api::text_table({"layer", "unit"}, units),
               equal ? "no layer differs from the reference (float32)"
                     : "no SQNR of layers: the samples that measure noise give NaN or infinite "
                       "numbers");
    return;
  }
  const std::vector<Count> counts = {{"overflow", &RowLayer::overflow},
                                     {"underflow", &RowLayer::underflow},
                                     {"invalid", &RowLayer::invalid}};
  const Saturated saturated(row);
  std::vector<std::vector<std::string>> layers;
  const bool ignores = experiments::ignores_units(row.predicted.version.value_or(1));
  bool starred = false;
  std::map<std::string, std::vector<std::string>> left_out;  // reason -> layers
  for (const RowLayer& layer : row.layers) {
    const bool lost = !layer.sqnr_db && experiments::not_finite_results(row, layer.name) > 0;
    const bool star = layer.predicted_db && ignores && experiments::prediction_ignores(layer.unit);
    starred = starred || star;
    if (!layer.left_out.empty()) left_out[layer.left_out].push_back(layer.name);
    layers.push_back({layer.name, layer.unit, lost ? "NaN" : decibels(layer.sqnr_db),
                      interval_text(layer.sqnr_ci95, "{:.2f}")});
    if (predictions) {
      layers.back().push_back(decibels(layer.predicted_db) + (star ? "*" : ""));
      layers.back().emplace_back(layer.verdict ? to_string(*layer.verdict) : "-");
    }
    for (const Count& count : counts) {
      const Member<double>& share = layer.*count.share;
      layers.back().push_back(share.is_null ? "-" : fmt::format("{:.2e}", share.value_or(0)));
    }
    saturated.add_cells(layer, layers.back());
  }
  std::vector<std::string> header = {"layer", "unit", "SQNR dB", "95 %"};
  if (predictions) header.insert(header.end(), {"predicted", "verdict"});
  for (const Count& count : counts) header.emplace_back(count.name);
  saturated.add_titles(header);
  fmt::print("{}SQNR{} on {}; overflow, underflow and invalid: shares of the operands on {}{}\n",
             api::text_table(header, layers), predictions ? " and predictions" : "", of_noise,
             of_counts, saturated.legend());
  if (starred) fmt::print("{}\n", kUnitLeftOut);
  const std::vector<Row> rows = {row};
  const experiments::ReportRow r = experiments::report_rows(rows).at(0);
  if (r.sqnr_db) {
    const bool known = r.predicted_sqnr_db.has_value();
    const char* star = row.predicted.ignores.empty() ? "" : "*";
    const Member<Verdict>& verdict = row.predicted.verdict;
    const Member<experiments::Ends>& ends = row.metrics.sqnr_ci95;
    const Member<std::int64_t>& samples = row.metrics.sqnr_samples;
    fmt::print("output: SQNR {} dB{}{}{}\n", decibels(r.sqnr_db),
               ends ? fmt::format(", 95 % interval {} of {} samples", interval_text(ends, "{:.2f}"),
                                  samples ? fmt::format("{}", *samples) : "null")
                    : "",
               known ? fmt::format(", predicted {}{}", decibels(r.predicted_sqnr_db), star) : "",
               known && verdict ? fmt::format(": {}", to_string(*verdict)) : "");
    if (const auto centred = r.hidden_by_mean())
      fmt::print("output without its mean over samples: SQNR {:.2f} dB; the mean makes the rest\n",
                 *centred);
    fmt::print("output scaled by its best gain, {}: {} dB{}{}\n", gain_text(row.metrics.gain),
               decibels(r.gained_db),
               known ? fmt::format(", predicted {}{} at {}", decibels(r.predicted_gained_db), star,
                                   gain_text(row.predicted.gain))
                     : "",
               row.metrics.top1 ? "; a common gain changes no decision" : "");
  }
  for (const auto& [reason, names] : left_out)
    fmt::print("no prediction of {}: {}\n", joined(names, ", "), reason);
}

}  // namespace numemu::cli
