#include "experiments/zap/zap_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/stats/interval.hpp"
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

}  // namespace numemu::experiments
