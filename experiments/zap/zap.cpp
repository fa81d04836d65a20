// The multiply-adds that a network saves when zeros of its ReLUs are predicted, and the loss of
// accuracy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "emu/stats/interval.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/zap/zap_trial.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "policies/zap/predictor.hpp"
#include "policies/zap/zap_network.hpp"

namespace numemu::experiments {

namespace {

struct Macs {
  double saved = 0, overhead = 0;
};

/// Multiply-adds per image at a point of a trial.
Macs macs_at(const ZapMeasured& trial, const ZapPoint& point) {
  Macs macs;
  for (std::size_t l = 0; l < point.layers.size(); ++l) {
    const ZapCounts& counts = point.layers[l];
    const ZapLayerResult& layer = trial.layers[l];
    const auto predicted = static_cast<double>(counts.predicted),
               computed = static_cast<double>(counts.computed);
    macs.saved += counts.saving * static_cast<double>(layer.macs);
    macs.overhead += static_cast<double>(policies::ZapPredictor::kMacs) * predicted /
                     (predicted + computed) * static_cast<double>(layer.activations);
  }
  return macs;
}

const ZapPoint& point_at(const ZapMeasured& trial, ZapList list, std::size_t i) {
  return list == ZapList::swept ? trial.points[i] : trial.chosen[i];
}

/// Null where it was not done.
const ZapAccuracy* accuracy_at(const ZapMeasured& trial, ZapList list, std::size_t i,
                               ZapCare care) {
  const ZapPoint& point = point_at(trial, list, i);
  if (care == ZapCare::none) return &point.zap;
  if (care == ZapCare::recalibrated) return point.recalibrated ? &*point.recalibrated : nullptr;
  if (list == ZapList::swept || !trial.chosen[i].finetuned) return nullptr;
  return &*trial.chosen[i].finetuned;
}

std::optional<AccuracyChange> change_of(const ZapResults& results, ZapList list, std::size_t i,
                                        ZapCare care) {
  const auto seeds = static_cast<double>(results.seeds.size()),
             images = static_cast<double>(results.images);
  double only_zap = 0, only_float = 0;
  for (const ZapMeasured& trial : results.seeds) {
    const ZapAccuracy* const accuracy = accuracy_at(trial, list, i, care);
    if (accuracy == nullptr) return {};
    only_zap += static_cast<double>(accuracy->only_zap) / seeds;
    only_float += static_cast<double>(accuracy->only_float) / seeds;
  }
  const stats::PairedAnswers answers{0, std::llround(only_zap), std::llround(only_float),
                                     results.images};
  const stats::Interval ends = stats::paired_share(answers, 1, stats::kNormal95);
  return AccuracyChange{{(only_zap - only_float) / images, ends.low, ends.high, results.images},
                        answers};
}

std::string change_text(const std::optional<AccuracyChange>& change) {
  return change ? mean_text(in_points(change->difference)) : "-";
}

std::string where_of(const ZapLayerResult& layer, const ZapResults& results) {
  return fmt::format("{}, mask {}", layer.layer, results.mask);
}

}  // namespace

ZapSummary summarize(const ZapResults& results, ZapList list, std::size_t i) {
  ZapSummary summary{.least_saving = HUGE_VAL, .largest_saving = -HUGE_VAL};
  const auto seeds = static_cast<double>(results.seeds.size());
  for (const ZapMeasured& trial : results.seeds) {
    const ZapPoint& point = point_at(trial, list, i);
    const auto all = static_cast<double>(trial.conv_macs);
    const Macs macs = macs_at(trial, point);
    summary.saving += macs.saved / all / seeds;
    summary.net_saving += (macs.saved - macs.overhead) / all / seeds;
    summary.least_saving = std::min(summary.least_saving, macs.saved / all);
    summary.largest_saving = std::max(summary.largest_saving, macs.saved / all);
    summary.thresholds.resize(point.layers.size());
    for (std::size_t l = 0; l < point.layers.size(); ++l) {
      summary.thresholds[l] += point.thresholds[l] / seeds;
      summary.error += point.layers[l].error / seeds;
    }
  }
  for (std::size_t c = 0; c < kZapCares.size(); ++c)
    summary.changes[c] = change_of(results, list, i, kZapCares[c]);
  return summary;
}

double share_of(const ZapResults& results, std::size_t layer, std::size_t point,
                std::int64_t ZapCounts::*count) {
  double sum = 0;
  for (const ZapMeasured& trial : results.seeds) {
    const ZapCounts& counts = trial.points[point].layers[layer];
    sum += static_cast<double>(counts.*count) /
           (static_cast<double>(counts.computed) + static_cast<double>(counts.predicted));
  }
  return sum / static_cast<double>(results.seeds.size());
}

std::string name_of(const ZapResults& results) {
  return fmt::format("mask {} ({:.0f} % computed), {} layers", results.mask,
                     100 * policies::mask_share(results.mask).value(), results.layers);
}

// Judges shares with intervals, exact identities, and the aim.

namespace {

void bound_shares(const ZapResults& results, const ZapLayerResult& layer, const std::string& where,
                  Judged& shares) {
  shares.add("bound on the saving of " + where + ": zeros among what is predicted",
             layer.bound_seen.value, layer.bound.value,
             portable::hypot(layer.bound_seen.error, layer.bound.error), kZapShareHolds);
  const double rest = 1 - policies::mask_share(results.mask).value();
  shares.add("error of a random predictor in " + where, layer.random.rate * rest,
             layer.random.measured, kZapShareHolds);
}

void layer_shares(const ZapResults& results, std::size_t l, bool first, Judged& shares) {
  const ZapMeasured& trial = results.seeds.front();
  const ZapLayerResult& layer = trial.layers[l];
  const std::string where = where_of(layer, results);
  if (first) bound_shares(results, layer, where, shares);
  for (std::size_t i = 0; i < layer.chosen_errors.size(); ++i) {
    const ZapError& error = layer.chosen_errors[i];
    shares.add(fmt::format("error of {}, at threshold {:.2f} ({} layers, budget {})", where,
                           error.threshold, results.layers, trial.chosen[i].budget),
               error.predicted, error.measured, kZapShareHolds);
  }
}

template <class Use>
void for_each_point(const std::vector<ZapResults>& all, ZapCare care, const Use& use) {
  for (const ZapResults& results : all) {
    const ZapMeasured& first = results.seeds.front();
    for (const ZapList list : {ZapList::swept, ZapList::chosen}) {
      const std::size_t points = list == ZapList::swept ? first.points.size() : first.chosen.size();
      for (std::size_t i = 0; i < points; ++i) {
        const ZapSummary at = summarize(results, list, i);
        if (at.change(care)) use(ZapBest{&results, at, *at.change(care)});
      }
    }
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
  const Verdict verdict = decide(passed, !reached);
  return {fmt::format("share of the convolutions' multiply-adds saved (mean over seeds) for less "
                      "than {} points, {}, at least{}{}",
                      100 * kZapLoss, to_string(care),
                      told.of == nullptr ? "; nothing that was tried loses so little" : "",
                      verdict == Verdict::undecided
                          ? "; that the loss is smaller is undecided after Holm's correction"
                          : ""),
          kZapSaving,
          told.at.saving,
          told.at.least_saving,
          told.at.largest_saving,
          verdict};
}

/// Those that some point has.
std::vector<ZapCare> cares_of(const std::vector<ZapResults>& all) {
  std::vector<ZapCare> cares;
  for (const ZapCare care : kZapCares) {
    bool done = false;
    for_each_point(all, care, [&](const ZapBest&) { done = true; });
    if (done) cares.push_back(care);
  }
  return cares;
}

/// Counts of predicted activations that are not the sum of hits and misses.
std::int64_t broken_identities(const ZapMeasured& trial) {
  std::int64_t broken = 0;
  const auto count = [&](const ZapPoint& point) {
    for (const ZapCounts& of : point.layers)
      broken += of.zeros_skipped + of.losses + of.values_kept + of.zeros_kept != of.predicted;
  };
  for (const ZapPoint& point : trial.points) count(point);
  for (const ZapChosen& point : trial.chosen) count(point);
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

ZapBest best_of(const std::vector<ZapResults>& all, ZapCare care) {
  ZapBest best;
  for_each_point(all, care, [&](const ZapBest& point) {
    if (-point.change.difference.mean >= kZapLoss) return;
    if (best.of == nullptr || point.at.saving > best.at.saving) best = point;
  });
  return best;
}

std::vector<Finding> zap_findings(const std::vector<ZapResults>& all) {
  Judged shares;
  std::set<std::pair<int, std::string>> seen;
  double worst_fit = 0, none = 0, limit = 0, broken = 0;
  for (const ZapResults& results : all) {
    const std::vector<ZapLayerResult>& layers = results.seeds.front().layers;
    // With "inner" and "all" some layers are there twice; their thresholds differ.
    for (std::size_t l = 0; l < layers.size(); ++l)
      layer_shares(results, l, seen.emplace(results.mask, layers[l].layer).second, shares);
    for (const ZapMeasured& trial : results.seeds) {
      broken += static_cast<double>(broken_identities(trial));
      for (const ZapLayerResult& layer : trial.layers) {
        worst_fit = std::max(worst_fit, layer.error_fit.rms);
        none = std::max(none, layer.limits.none);
        limit = std::max(limit, std::fabs(layer.limits.all - layer.limits.expected));
      }
    }
  }
  // Three float64 sums over leaves of 64 terms and at most 40 levels of halves.
  constexpr double kRounding = 3 * (64 + 40) * 0x1p-53;
  Conclusion conclusion;
  conclusion.add(shares.findings(), "shares");
  conclusion.add(self_check("tallies whose hits and misses do not add up", 0, broken, broken == 0),
                 "curves");
  conclusion.add(self_check("error where nothing is skipped", 0, none, none == 0), "curves");
  conclusion.add(self_check("error where all predictions say zero, less 1 - sum(I_s) / sum", 0,
                            limit, limit <= kRounding),
                 "curves");
  conclusion.add(exact_finding("largest residual (RMS) of a logistic error curve, at most",
                               kZapFitHolds, worst_fit, worst_fit <= kZapFitHolds),
                 "curves");
  for (const ZapCare care : cares_of(all))
    conclusion.add(aim_under(all, care),
                   care == ZapCare::finetuned ? "saving, fine-tuned" : "saving");
  return conclusion.findings;
}

// Rows and series out of summaries.

namespace {

struct Kind {
  std::int64_t ZapCounts::*count;
  const char* name;
};
constexpr Kind kKinds[] = {{&ZapCounts::zeros_skipped, "zero, skipped"},
                           {&ZapCounts::losses, "value, skipped (1 -> 0)"},
                           {&ZapCounts::values_kept, "value, computed"},
                           {&ZapCounts::zeros_kept, "zero, computed (0 -> 1)"}};

std::string percent(double share) { return fmt::format("{:.2f}", 100 * share); }

const ZapMeasured& first_trial(const ZapResults& results) { return results.seeds.front(); }

/// Share of a point's count: of one layer's activations, or weighted by multiply-adds of all.
double total_share(const ZapResults& results, std::size_t point, std::int64_t ZapCounts::*count) {
  double sum = 0, macs = 0;
  for (std::size_t l = 0; l < first_trial(results).layers.size(); ++l) {
    const auto own = static_cast<double>(first_trial(results).layers[l].macs);
    sum += share_of(results, l, point, count) * own;
    macs += own;
  }
  return sum / macs;
}

std::string at_threshold(const ZapResults& results, std::size_t point) {
  return fmt::format("threshold {:.2f}", first_trial(results).points[point].thresholds[0]);
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
    for (std::size_t i = 0; i < first_trial(results).points.size(); ++i) {
      const ZapSummary at = summarize(results, ZapList::swept, i);
      const auto add = [&](ChartSeries& series, const std::optional<AccuracyChange>& change) {
        if (change)
          series.points.push_back(
              gain_point(100 * at.saving, at_threshold(results, i), in_points(change->difference)));
      };
      add(plain, at.change(ZapCare::none));
      add(again, at.change(ZapCare::recalibrated));
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
    for (const ZapLayerResult& layer : first_trial(results).layers) {
      // With "inner" and "all" some layers are there twice, the same: each was trained by itself.
      const std::string name = where_of(layer, results);
      const auto same = [&](const ChartSeries& other) { return other.name == name; };
      if (std::any_of(chart.series.begin(), chart.series.end(), same)) continue;
      ChartSeries series{.name = name};
      for (const ZapCurvePoint& at : layer.curve)
        series.points.push_back(
            {100 * at.saving, fmt::format("threshold {:.1f}", at.threshold), 100 * at.error});
      chart.series.push_back(series);
    }
  }
  ChartSeries random{.name = "random predictor", .predicted = true};
  for (const double share : {0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0})
    random.points.push_back({share, "", share});
  chart.series.push_back(random);
  return chart;
}

/// Shares of a layer's values that are skipped and of its zeros that are, at each threshold of the
/// sweep: means over seeds. A layer without values or zeros among what is predicted has none.
ChartSeries roc_of(const ZapResults& results, std::size_t l) {
  ChartSeries roc{.name = where_of(first_trial(results).layers[l], results)};
  for (std::size_t i = 0; i < first_trial(results).points.size(); ++i) {
    const auto share = [&](std::int64_t ZapCounts::*skipped, std::int64_t ZapCounts::*kept) {
      const double yes = share_of(results, l, i, skipped), no = share_of(results, l, i, kept);
      return 100 * yes / (yes + no);
    };
    roc.points.push_back({share(&ZapCounts::losses, &ZapCounts::values_kept),
                          at_threshold(results, i),
                          share(&ZapCounts::zeros_skipped, &ZapCounts::zeros_kept)});
  }
  std::ranges::sort(roc.points, {}, &ChartPoint::x);
  roc.points.insert(roc.points.begin(), {0, "nothing skipped", 0});
  roc.points.push_back({100, "everything skipped", 100});
  return roc;
}

Chart roc_chart(const std::vector<ZapResults>& all) {
  Chart chart{.kind = Chart::Kind::line,
              .title = "Zeros found against values lost (ROC)",
              .caption =
                  "Test images, the thresholds of the sweep, means over seeds, ends added; of the "
                  "activations that a mask leaves to the predictors. By chance: the diagonal.",
              .x = "values predicted to be zero, % of all values",
              .y = "zeros predicted to be zero, % of all zeros"};
  for (const ZapResults& results : all) {
    for (std::size_t l = 0; l < first_trial(results).layers.size(); ++l) {
      ChartSeries roc = roc_of(results, l);
      // With "inner" and "all" some layers are there twice.
      if (std::ranges::find(chart.series, roc.name, &ChartSeries::name) == chart.series.end())
        chart.series.push_back(std::move(roc));
    }
  }
  chart.series.push_back(
      {.name = "random predictor", .points = {{0, "", 0}, {100, "", 100}}, .predicted = true});
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
      series.points.push_back({0, kind.name, 100 * total_share(results, point, kind.count)});
    chart.series.push_back(series);
  }
  return chart;
}

/// Accuracy against multiply-adds saved, a row per threshold and mask.
ResultTable sweep_table(const std::vector<ZapResults>& all) {
  ResultTable table{"Accuracy and multiply-adds saved, one threshold for all layers",
                    {"layers", "mask", "threshold", "saved %", "less predictors %", "error, summed",
                     "top-1 difference, points", "recalibrated"},
                    {}};
  for (const ZapResults& results : all) {
    for (std::size_t i = 0; i < first_trial(results).points.size(); ++i) {
      const ZapSummary at = summarize(results, ZapList::swept, i);
      table.rows.push_back(
          {results.layers, std::to_string(results.mask), fmt::format("{:.2f}", at.thresholds[0]),
           percent(at.saving), percent(at.net_saving), fmt::format("{:.4f}", at.error),
           change_text(at.change(ZapCare::none)), change_text(at.change(ZapCare::recalibrated))});
    }
  }
  return table;
}

/// Hits and misses of every layer and in total, at one point of the sweep.
ResultTable miss_table(const std::vector<ZapResults>& all, std::size_t point) {
  ResultTable table{
      "Predictions in per cent of all activations, " + at_threshold(all.front(), point),
      {"layer", "mask", "computed"},
      {}};
  for (const Kind& kind : kKinds) table.header.emplace_back(kind.name);
  table.header.emplace_back("bound on saving");
  for (const ZapResults& results : all) {
    const std::vector<ZapLayerResult>& layers = first_trial(results).layers;
    for (std::size_t l = 0; l <= layers.size(); ++l) {
      const bool total = l == layers.size();
      if (total && layers.size() == 1) continue;
      const auto share = [&](std::int64_t ZapCounts::*count) {
        return total ? total_share(results, point, count) : share_of(results, l, point, count);
      };
      std::vector<std::string> row{total ? "together, by multiply-adds" : layers[l].layer,
                                   std::to_string(results.mask),
                                   percent(share(&ZapCounts::computed))};
      for (const Kind& kind : kKinds) row.push_back(percent(share(kind.count)));
      row.push_back(percent(share(&ZapCounts::zeros_skipped) + share(&ZapCounts::zeros_kept)));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// Thresholds chosen for each budget of error.
ResultTable budget_table(const std::vector<ZapResults>& all) {
  ResultTable table{"Thresholds optimised for a budget of error, summed over the layers",
                    {"layers", "mask", "budget", "thresholds, mean over seeds", "error", "saved %",
                     "less predictors %", "top-1 difference, points", "recalibrated", "fine-tuned"},
                    {}};
  for (const ZapResults& results : all) {
    for (std::size_t i = 0; i < first_trial(results).chosen.size(); ++i) {
      const ZapSummary at = summarize(results, ZapList::chosen, i);
      table.rows.push_back({results.layers, std::to_string(results.mask),
                            fmt::format("{:.3f}", first_trial(results).chosen[i].budget),
                            fmt::format("{:.2f}", fmt::join(at.thresholds, " ")),
                            fmt::format("{:.4f}", at.error), percent(at.saving),
                            percent(at.net_saving), change_text(at.change(ZapCare::none)),
                            change_text(at.change(ZapCare::recalibrated)),
                            change_text(at.change(ZapCare::finetuned))});
    }
  }
  return table;
}

std::vector<int> masks_of(const Settings& settings) {
  std::vector<int> masks;
  for (const std::int64_t mask : settings.whole_numbers("masks")) {
    masks.push_back(static_cast<int>(mask));
  }
  return masks;
}

void check_layers(const std::string& which) {
  if (which != "inner" && which != "all")
    throw Error("expected inner, all or both, not '" + which + "'");
}

/// The settings as a trial without mask, layers and seed.
ZapTrial plan_of(const Settings& settings, const net::Dataset& data) {
  ZapTrial plan;
  plan.train_samples = std::min(settings.integer("train_images"), data.train_count());
  plan.epochs = settings.integer("epochs");
  plan.images = std::min(settings.integer("images"), data.test_count());
  plan.thresholds = settings.numbers("thresholds");
  plan.budgets = settings.numbers("budgets");
  plan.finetune_epochs = settings.integer("finetune");
  return plan;
}

/// The point of the sweep nearest to the paper's threshold of 0.
std::size_t nearest_to_zero(const std::vector<double>& thresholds) {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < thresholds.size(); ++i)
    if (std::fabs(thresholds[i]) < std::fabs(thresholds[nearest])) nearest = i;
  return nearest;
}

std::string best_sentence(const std::vector<ZapResults>& results, ZapCare care) {
  const ZapBest best = best_of(results, care);
  if (best.of == nullptr) {
    return fmt::format("With {} no threshold of any mask loses less than {} points of top-1.",
                       to_string(care), 100 * kZapLoss);
  }
  if (best.of->seeds.size() < 2) {
    return fmt::format(
        "With {} up to {:.1f} % of the convolutions' multiply-adds are saved for less than {} "
        "points; one seed does not tell which mask and thresholds save most.",
        to_string(care), 100 * best.at.saving, 100 * kZapLoss);
  }
  return fmt::format(
      "With {} the largest saving for less than {} points of top-1 is {:.1f} % of the "
      "convolutions' multiply-adds ({:.1f} to {:.1f} % over seeds; {:.1f} % less the predictors' "
      "own): {}, threshold {}; {} points.",
      to_string(care), 100 * kZapLoss, 100 * best.at.saving, 100 * best.at.least_saving,
      100 * best.at.largest_saving, 100 * best.at.net_saving, name_of(*best.of),
      fmt::format("{:.2f}", fmt::join(best.at.thresholds, ", ")),
      mean_text(in_points(best.change.difference)));
}

/// What is lost of each layer's sum beside what random predictors lose that skip as many.
std::string random_sentence(const ZapResults& results) {
  std::string text;
  for (const ZapLayerResult& layer : first_trial(results).layers)
    text += fmt::format("{}{} {:.2f} % ({:.2f} %)", text.empty() ? "" : ", ", layer.layer,
                        100 * layer.random.trained.value, 100 * layer.random.measured.value);
  return fmt::format(
      "{}, threshold 0, first seed: of the activations' sum the trained predictors lose, and in "
      "brackets random ones that skip as many: {}.",
      name_of(results), text);
}

Conclusion run_zap(const ExperimentRun& run) {
  const std::vector<int> masks = masks_of(run.settings);
  const std::vector<std::string> layers = run.settings.list("layers");
  const std::vector<std::uint64_t> seeds = seeds_of(run);
  const net::Dataset data = load_data(run);
  require_one_class(data, "experiment zap");
  const ZapTrial plan = plan_of(run.settings, data);
  TrainedNet trained = load_trained_net(run.settings.text("net"), data, run.folders);
  for (const std::string& which : layers) {
    if (policies::zap_sites(trained.graph, which == "all").empty()) {
      throw Error("network " + trained.graph.name + ", layers " + which +
                  ": expected a ReLU behind a convolution (layers=all counts the first too)");
    }
  }
  run.say(fmt::format("{} on {}: float32 baseline", trained.graph.name, data.name()));
  net::Numerics float32;
  const net::Evaluation baseline =
      net::evaluate(trained.graph, data, net::Split::test, plan.images, float32);

  StudyPlan study{{}, seeds};
  std::vector<ZapResults> results;
  for (const std::string& which : layers) {
    for (const int mask : masks) {
      results.push_back({mask, which, plan.images});
      study.methods.push_back(fmt::format("{} layers, mask {}", which, mask));
    }
  }
  auto measured = run_study<ZapMeasured>(
      run, study, [&](std::size_t m, std::uint64_t seed) -> StudyRun<ZapMeasured> {
        ZapTrial trial = plan;
        trial.first = results[m].layers == "all";
        trial.mask = results[m].mask;
        trial.seed = seed;
        trial.predictors = fmt::format("{}/zap-{}-mask{}-seed{}.safetensors", run.out,
                                       results[m].layers, trial.mask, seed);
        return {point_of(trial, trained, data),
                [&, trial] { return run_zap_trial(trial, trained, data, baseline); }};
      });
  for (std::size_t m = 0; m < results.size(); ++m) results[m].seeds = std::move(measured.runs[m]);

  const std::size_t zero = nearest_to_zero(plan.thresholds);
  Conclusion conclusion;
  for (const ZapCare care : cares_of(results))
    conclusion.sentences.push_back(best_sentence(results, care));
  for (const ZapResults& of_mask : results)
    conclusion.sentences.push_back(random_sentence(of_mask));
  conclusion.tables = {sweep_table(results), miss_table(results, zero), budget_table(results)};
  conclusion.findings = zap_findings(results);
  conclusion.charts = {accuracy_chart(results), roc_chart(results), error_chart(results),
                       kind_chart(results, zero)};
  return conclusion;
}

}  // namespace

extern const Experiment experiment_zap = {
    "zap",
    "how many multiply-adds does a network save if the zeros behind its ReLUs are predicted, and "
    "how much accuracy does it lose",
    "Shomron et al. (ECCV 2020, arXiv 1909.07636) claim that light predictors of which activations "
    "a ReLU makes zero save a large part of a convolution's multiply-adds at little accuracy.",
    {{"saving",
      "At some mask, threshold or budget 25 % of the convolutions' multiply-adds are saved "
      "for less than 0.5 points of top-1 without fine-tuning (published; the margin is ours).",
      "seeds"},
     {"saving, fine-tuned", "So they are where the network is fine-tuned (a contrast).", "seeds"},
     {"shares",
      "Validation images and fitted curves predict shares of zeros and errors on test images "
      "within 0.01 (derived here)."},
     {"curves", "Error over threshold is a logistic curve, to 0.02 (RMS) (derived here)."}},
    {{"net", "lenet", "network or file", takes_network()},
     data_setting(),
     {"masks", "5", "4,5,6", "3,4,5,6,7,8", "types of position masks, 3 to 10",
      wholes(policies::kLeastMaskType, policies::kLargestMaskType)},
     {"layers", "inner", "inner,all", "inner,all",
      "inner, all (behind the first convolution too), or both", list_of(check_layers)},
     {"thresholds", "-0.2,0,0.2,0.4", "-0.5,-0.4,-0.3,-0.2,-0.1,0,0.1,0.2,0.3,0.4,0.5",
      "-1,-0.8,-0.6,-0.5,-0.4,-0.3,-0.2,-0.1,0,0.1,0.2,0.3,0.4,0.5,0.6,0.8,1",
      "predictions above are computed", reals(-10, 10)},
     {"budgets", "0.05", "0.02,0.05,0.1", "0.01,0.02,0.05,0.1,0.2",
      "of error summed over the layers", reals(1e-6, 100)},
     {"seeds", "1", "3", "5", "predictors trained per mask", whole(1, 1000)},
     {"train_images", "2048", "16384", "54000", "training images the predictors see",
      whole(2, 100'000'000)},
     {"epochs", "2", "5", "5", "of predictors", whole(1, 1000)},
     {"finetune", "0", "1", "1", "epochs of the network with its predictors, at each budget",
      whole(0, 1000)},
     {"images", "1000", "10000", "10000", "test samples", whole(1, 100'000'000)}},
    run_zap};

}  // namespace numemu::experiments
