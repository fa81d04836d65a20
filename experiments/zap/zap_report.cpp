// Rows and series out of summaries.
#include "experiments/zap/zap_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace numemu::experiments {
namespace {

struct Kind {
  const char* key;
  const char* name;
};
constexpr Kind kKinds[] = {{"zeros_skipped", "zero, skipped"},
                           {"losses", "value, skipped (1 -> 0)"},
                           {"values_kept", "value, computed"},
                           {"zeros_kept", "zero, computed (0 -> 1)"}};

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

const Json& first_trial(const ZapResults& results) { return results.seeds.front(); }

double macs_of(const ZapResults& results, std::size_t layer) {
  return first_trial(results)["layers"][layer]["macs"].get<double>();
}

/// Share of a point's tally `key`: of one layer's activations, or weighted by multiply-adds of all.
double total_share(const ZapResults& results, std::size_t point, const char* key) {
  double sum = 0, macs = 0;
  for (std::size_t l = 0; l < first_trial(results)["layers"].size(); ++l) {
    sum += share_of(results, l, point, key) * macs_of(results, l);
    macs += macs_of(results, l);
  }
  return sum / macs;
}

ChartPoint accuracy_point(double saving, const std::string& name, const AccuracyChange& change) {
  return {100 * saving, name, 100 * change.value, 100 * change.low, 100 * change.high};
}

std::string at_threshold(const ZapResults& results, std::size_t point) {
  return fmt::format("threshold {:.2f}",
                     first_trial(results)["points"][point]["thresholds"][0].get<double>());
}

Chart accuracy_chart(const std::vector<ZapResults>& all) {
  Chart chart{.kind = Chart::Kind::line,
              .title = "Accuracy against multiply-adds saved",
              .caption =
                  "float32; one threshold for all layers, swept; means over seeds, 95 % "
                  "intervals paired by image. Savings before the predictors' own cost.",
              .x = "multiply-adds of all convolutions saved, %",
              .y = "top-1 difference to float32, points"};
  for (const ZapResults& results : all) {
    ChartSeries plain{.name = name_of(results)}, again{.name = plain.name + ", recalibrated"};
    for (std::size_t i = 0; i < first_trial(results)["points"].size(); ++i) {
      const ZapSummary at = summarize(results, "points", i);
      const std::string name = at_threshold(results, i);
      plain.points.push_back(accuracy_point(at.saving, name, at.zap));
      if (at.has_recalibrated)
        again.points.push_back(accuracy_point(at.saving, name, at.recalibrated));
    }
    chart.series.push_back(plain);
    if (!again.points.empty()) chart.series.push_back(again);
  }
  return chart;
}

Chart error_chart(const std::vector<ZapResults>& all) {
  Chart chart{.kind = Chart::Kind::line,
              .title = "Error against saving, layer by layer",
              .caption =
                  "First seed, validation images, thresholds from -1 to 1. A predictor that "
                  "skips at random loses what it saves: the diagonal.",
              .x = "activations skipped, % of the layer",
              .y = "sum of activations lost, %"};
  for (const ZapResults& results : all) {
    for (const Json& layer : first_trial(results)["layers"]) {
      // With "inner" and "all" some layers are there twice, the same: each was trained by itself.
      const std::string name =
          fmt::format("{}, mask {}", layer["layer"].get<std::string>(), results.mask);
      const auto same = [&](const ChartSeries& other) { return other.name == name; };
      if (std::any_of(chart.series.begin(), chart.series.end(), same)) continue;
      ChartSeries series{.name = name};
      for (const Json& at : layer["curve"]) {
        series.points.push_back({100 * at["saving"].get<double>(),
                                 fmt::format("threshold {:.1f}", at["threshold"].get<double>()),
                                 100 * at["error"].get<double>()});
      }
      chart.series.push_back(series);
    }
  }
  ChartSeries random{.name = "random predictor", .predicted = true};
  for (const double share : {0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0})
    random.points.push_back({share, "", share});
  chart.series.push_back(random);
  return chart;
}

Chart kind_chart(const std::vector<ZapResults>& all, std::size_t point) {
  Chart chart{.kind = Chart::Kind::bars,
              .title = "Predictions, right and wrong",
              .caption = "Share of all activations, layers weighted by their multiply-adds, at " +
                         at_threshold(all.front(), point) + "; the rest is computed unasked.",
              .x = "prediction",
              .y = "activations, %"};
  for (const ZapResults& results : all) {
    ChartSeries series{.name = name_of(results)};
    for (const Kind& kind : kKinds)
      series.points.push_back({0, kind.name, 100 * total_share(results, point, kind.key)});
    chart.series.push_back(series);
  }
  return chart;
}

}  // namespace

ResultTable sweep_table(const std::vector<ZapResults>& all) {
  ResultTable table{"Accuracy and multiply-adds saved, one threshold for all layers",
                    {"layers", "mask", "threshold", "saved %", "less predictors %", "error, summed",
                     "top-1 difference, points", "recalibrated"},
                    {}};
  for (const ZapResults& results : all) {
    for (std::size_t i = 0; i < first_trial(results)["points"].size(); ++i) {
      const ZapSummary at = summarize(results, "points", i);
      table.rows.push_back(
          {results.layers, std::to_string(results.mask), fmt::format("{:.2f}", at.thresholds[0]),
           percent(at.saving), percent(at.net_saving), fmt::format("{:.4f}", at.error),
           change_text(at.zap), at.has_recalibrated ? change_text(at.recalibrated) : "-"});
    }
  }
  return table;
}

ResultTable miss_table(const std::vector<ZapResults>& all, std::size_t point) {
  ResultTable table{
      "Predictions in per cent of all activations, " + at_threshold(all.front(), point),
      {"layer", "mask", "computed"},
      {}};
  for (const Kind& kind : kKinds) table.header.emplace_back(kind.name);
  table.header.emplace_back("bound on saving");
  for (const ZapResults& results : all) {
    const Json& layers = first_trial(results)["layers"];
    for (std::size_t l = 0; l <= layers.size(); ++l) {
      const bool total = l == layers.size();
      if (total && layers.size() == 1) continue;
      const auto share = [&](const char* key) {
        return total ? total_share(results, point, key) : share_of(results, l, point, key);
      };
      std::vector<std::string> row{
          total ? "together, by multiply-adds" : layers[l]["layer"].get<std::string>(),
          std::to_string(results.mask), percent(share("computed"))};
      for (const Kind& kind : kKinds) row.push_back(percent(share(kind.key)));
      row.push_back(percent(share("zeros_skipped") + share("zeros_kept")));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

ResultTable budget_table(const std::vector<ZapResults>& all) {
  ResultTable table{"Thresholds optimised for a budget of error, summed over the layers",
                    {"layers", "mask", "budget", "thresholds, mean over seeds", "error", "saved %",
                     "less predictors %", "top-1 difference, points", "recalibrated", "fine-tuned"},
                    {}};
  for (const ZapResults& results : all) {
    for (std::size_t i = 0; i < first_trial(results)["chosen"].size(); ++i) {
      const ZapSummary at = summarize(results, "chosen", i);
      std::string thresholds;
      for (const double threshold : at.thresholds)
        thresholds += fmt::format("{}{:.2f}", thresholds.empty() ? "" : " ", threshold);
      table.rows.push_back(
          {results.layers, std::to_string(results.mask),
           fmt::format("{:.3f}", first_trial(results)["chosen"][i]["budget"].get<double>()),
           thresholds, fmt::format("{:.4f}", at.error), percent(at.saving), percent(at.net_saving),
           change_text(at.zap), at.has_recalibrated ? change_text(at.recalibrated) : "-",
           at.has_finetuned ? change_text(at.finetuned) : "-"});
    }
  }
  return table;
}

std::vector<Chart> zap_charts(const std::vector<ZapResults>& all, std::size_t point) {
  return {accuracy_chart(all), error_chart(all), kind_chart(all, point)};
}

}  // namespace numemu::experiments
