#include "experiments/zap/zap_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "emu/stats/holm.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/study.hpp"
#include "formats/portable/math.hpp"
#include "policies/zap/position_mask.hpp"
#include "policies/zap/predictor.hpp"

namespace numemu::experiments {

namespace {

struct Macs {
  double saved = 0, overhead = 0;
};

/// Multiply-adds per image at a point of a trial.
Macs macs_at(const Json& trial, const Json& point) {
  Macs macs;
  for (std::size_t l = 0; l < point["layers"].size(); ++l) {
    const Json &tally = point["layers"][l], &layer = trial["layers"][l];
    const double predicted = tally["predicted"], computed = tally["computed"];
    macs.saved += tally["saving"].get<double>() * layer["macs"].get<double>();
    macs.overhead += static_cast<double>(policies::ZapPredictor::kMacs) * predicted /
                     (predicted + computed) * layer["activations"].get<double>();
  }
  return macs;
}

}  // namespace

AccuracyChange change_of(const std::vector<Json>& points, const char* key, std::int64_t images) {
  double only_zap = 0, only_float = 0;
  for (const Json& point : points) {
    only_zap += point[key]["only_zap"].get<double>() / static_cast<double>(points.size());
    only_float += point[key]["only_float"].get<double>() / static_cast<double>(points.size());
  }
  const stats::PairedAnswers answers{0, std::llround(only_zap), std::llround(only_float), images};
  const stats::Interval interval = stats::paired_share(answers, 1, stats::kNormal95);
  return {(only_zap - only_float) / static_cast<double>(images), interval.low, interval.high,
          answers};
}

ZapSummary summarize(const ZapResults& results, const char* list, std::size_t i) {
  ZapSummary summary;
  summary.least_saving = HUGE_VAL;
  summary.largest_saving = -HUGE_VAL;
  const auto seeds = static_cast<double>(results.seeds.size());
  std::vector<Json> points;
  for (const Json& trial : results.seeds) {
    const Json& point = trial[list][i];
    points.push_back(point);
    const double all = trial["conv_macs"];
    const Macs macs = macs_at(trial, point);
    summary.saving += macs.saved / all / seeds;
    summary.net_saving += (macs.saved - macs.overhead) / all / seeds;
    summary.least_saving = std::min(summary.least_saving, macs.saved / all);
    summary.largest_saving = std::max(summary.largest_saving, macs.saved / all);
    summary.thresholds.resize(point["layers"].size());
    for (std::size_t l = 0; l < point["layers"].size(); ++l) {
      summary.thresholds[l] += point["thresholds"][l].get<double>() / seeds;
      summary.error += point["layers"][l]["error"].get<double>() / seeds;
    }
  }
  const auto change = [&](const char* key, AccuracyChange& to) {
    if (!points.front().contains(key) || points.front()[key].is_null()) return false;
    to = change_of(points, key, results.images);
    return true;
  };
  change("zap", summary.zap);
  summary.has_recalibrated = change("recalibrated", summary.recalibrated);
  summary.has_finetuned = change("finetuned", summary.finetuned);
  return summary;
}

double share_of(const ZapResults& results, std::size_t layer, std::size_t point, const char* key) {
  double sum = 0;
  for (const Json& trial : results.seeds) {
    const Json& tally = trial["points"][point]["layers"][layer];
    sum += tally[key].get<double>() /
           (tally["computed"].get<double>() + tally["predicted"].get<double>());
  }
  return sum / static_cast<double>(results.seeds.size());
}

std::string name_of(const ZapResults& results) {
  return fmt::format("mask {} ({:.0f} % computed), {} layers", results.mask,
                     100 * policies::mask_share(results.mask).value(), results.layers);
}

std::string change_text(const AccuracyChange& change) {
  return fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", 100 * change.value, 100 * change.low,
                     100 * change.high);
}

// Judges shares with intervals, exact identities, and the aim.

namespace {

void bound_shares(const ZapResults& results, const Json& layer, const std::string& where,
                  Judged& shares) {
  const Json &seen = layer["bound_seen"], &bound = layer["bound"];
  const double error = portable::hypot(seen["error"].get<double>(), bound["error"].get<double>());
  shares.add("bound on the saving of " + where + ": zeros among what is predicted", seen["value"],
             bound["value"], error, kZapShareHolds);
  const Json& random = layer["random"];
  const double rest = 1 - policies::mask_share(results.mask).value();
  shares.add("error of a random predictor in " + where, random["rate"].get<double>() * rest,
             random["measured"]["value"], random["measured"]["error"], kZapShareHolds);
}

void layer_shares(const ZapResults& results, std::size_t l, bool first, Judged& shares) {
  const Json& trial = results.seeds.front();
  const Json& layer = trial["layers"][l];
  const std::string where =
      fmt::format("{}, mask {}", layer["layer"].get<std::string>(), results.mask);
  if (first) bound_shares(results, layer, where, shares);
  for (std::size_t i = 0; i < layer["chosen_errors"].size(); ++i) {
    const Json& error = layer["chosen_errors"][i];
    shares.add(fmt::format("error of {}, at threshold {:.2f} ({} layers, budget {})", where,
                           error["threshold"].get<double>(), results.layers,
                           trial["chosen"][i]["budget"].get<double>()),
               error["predicted"], error["measured"]["value"], error["measured"]["error"],
               kZapShareHolds);
  }
}

/// Null where it was not done.
const AccuracyChange* change_under(const ZapSummary& at, ZapCare care) {
  switch (care) {
    case ZapCare::none:
      return &at.zap;
    case ZapCare::recalibrated:
      return at.has_recalibrated ? &at.recalibrated : nullptr;
    case ZapCare::finetuned:
      return at.has_finetuned ? &at.finetuned : nullptr;
  }
  return nullptr;
}

template <class Use>
void for_each_point(const std::vector<ZapResults>& all, ZapCare care, const Use& use) {
  for (const ZapResults& results : all)
    for (const char* list : {"points", "chosen"})
      for (std::size_t i = 0; i < results.seeds.front()[list].size(); ++i) {
        const ZapSummary at = summarize(results, list, i);
        const AccuracyChange* const change = change_under(at, care);
        if (change != nullptr) use(ZapBest{&results, at, *change});
      }
}

/// That the true loss is at least kZapLoss: one-sided, by the score that gives the interval its
/// ends.
double p_of_loss(const AccuracyChange& change) { return tails(change.answers, -kZapLoss).above; }

/// Whether a point saves enough for less than kZapLoss is tested at every point, so that the best
/// of many must pass Holm's procedure over all of them; what saves too little cannot pass. One
/// point alone passes where its interval ends below. It fails where none saves enough for less on
/// average. The finding reports the largest saving of a point that passes, else on average.
Finding aim_under(const std::vector<ZapResults>& all, ZapCare care) {
  constexpr double kLevel = 0.025;  // one end of an interval of 95 %
  std::vector<ZapBest> points;
  std::vector<double> p_values;
  for_each_point(all, care, [&](const ZapBest& point) {
    points.push_back(point);
    p_values.push_back(point.at.saving < kZapSaving ? 1 : p_of_loss(point.change));
  });
  const std::vector<bool> passes = stats::holm(p_values, kLevel);
  ZapBest told = best_of(all, care);
  const bool reached = told.of != nullptr && told.at.saving >= kZapSaving;
  bool passed = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!passes[i]) continue;
    if (!passed || points[i].at.saving > told.at.saving) told = points[i];
    passed = true;
  }
  return {fmt::format("share of the convolutions' multiply-adds saved (mean over seeds) for less "
                      "than {} points, {}, at least",
                      100 * kZapLoss, to_string(care)),
          kZapSaving,
          told.at.saving,
          told.at.least_saving,
          told.at.largest_saving,
          decide(passed, !reached)};
}

/// Tallies whose predicted activations are not the sum of hits and misses.
std::int64_t broken_identities(const std::vector<ZapResults>& all) {
  std::int64_t broken = 0;
  for (const ZapResults& results : all)
    for (const Json& trial : results.seeds)
      for (const char* list : {"points", "chosen"})
        for (const Json& point : trial[list])
          for (const Json& tally : point["layers"]) {
            std::int64_t sum = 0;
            for (const char* key : {"zeros_skipped", "losses", "values_kept", "zeros_kept"})
              sum += tally[key].get<std::int64_t>();
            broken += sum != tally["predicted"].get<std::int64_t>();
          }
  return broken;
}

}  // namespace

std::string to_string(ZapCare care) {
  switch (care) {
    case ZapCare::none:
      return "the network as it is";
    case ZapCare::recalibrated:
      return "statistics estimated anew";
    case ZapCare::finetuned:
      return "fine-tuning";
  }
  return "";
}

std::vector<ZapCare> cares_of(const std::vector<ZapResults>& all) {
  std::vector<ZapCare> cares;
  for (const ZapCare care : {ZapCare::none, ZapCare::recalibrated, ZapCare::finetuned}) {
    bool done = false;
    for_each_point(all, care, [&](const ZapBest&) { done = true; });
    if (done) cares.push_back(care);
  }
  return cares;
}

ZapBest best_of(const std::vector<ZapResults>& all, ZapCare care) {
  ZapBest best;
  for_each_point(all, care, [&](const ZapBest& point) {
    if (-point.change.value >= kZapLoss) return;
    if (best.of == nullptr || point.at.saving > best.at.saving) best = point;
  });
  return best;
}

std::vector<Finding> zap_findings(const std::vector<ZapResults>& all) {
  Judged shares;
  std::set<std::pair<int, std::string>> seen;
  double worst_fit = 0, none = 0, limit = 0;
  for (const ZapResults& results : all) {
    const Json& layers = results.seeds.front()["layers"];
    // With "inner" and "all" some layers are there twice; their thresholds differ.
    for (std::size_t l = 0; l < layers.size(); ++l)
      layer_shares(results, l, seen.emplace(results.mask, layers[l]["layer"]).second, shares);
    for (const Json& trial : results.seeds)
      for (const Json& layer : trial["layers"]) {
        const Json& limits = layer["limits"];
        worst_fit = std::max(worst_fit, layer["error_fit"]["rms"].get<double>());
        none = std::max(none, limits["none"].get<double>());
        limit = std::max(limit,
                         std::fabs(limits["all"].get<double>() - limits["expected"].get<double>()));
      }
  }
  Conclusion conclusion;
  conclusion.findings = shares.findings();
  conclusion.about("shares");
  const auto broken = static_cast<double>(broken_identities(all));
  std::vector<Finding>& findings = conclusion.findings;
  findings.push_back(
      self_check("tallies whose hits and misses do not add up", 0, broken, broken == 0));
  findings.push_back(self_check("error where nothing is skipped", 0, none, none == 0));
  // Three float64 sums over leaves of 64 terms and at most 40 levels of halves.
  constexpr double kRounding = 3 * (64 + 40) * 0x1p-53;
  findings.push_back(self_check("error where all predictions say zero, less 1 - sum(I_s) / sum", 0,
                                limit, limit <= kRounding));
  findings.push_back(exact_finding("largest residual (RMS) of a logistic error curve, at most",
                                   kZapFitHolds, worst_fit, worst_fit <= kZapFitHolds));
  conclusion.about("curves");
  for (const ZapCare care : cares_of(all)) findings.push_back(aim_under(all, care));
  conclusion.about("saving");
  return findings;
}

// Rows and series out of summaries.

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
