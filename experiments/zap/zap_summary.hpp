// Results of trials that differ in their seed alone, as means with intervals.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// The trials of one mask type in the same layers, a seed each.
struct ZapResults {
  int mask = 5;
  std::string layers = "inner";  ///< as the setting: inner, all
  std::int64_t images = 0;
  std::vector<Json> seeds;
};

/// A change of top-1 against float32, as a share of the images. The mean over seeds; the interval
/// (95 %, paired by image) is that of one seed with the mean counts, as all seeds see the same
/// images.
struct AccuracyChange {
  double value = 0, low = 0, high = 0;
  stats::PairedAnswers answers = {};  ///< zap's alone, float32's alone: the mean counts
};
/// Of the accuracy called `key` in each of `points`; `points` holds one entry per seed.
AccuracyChange change_of(const std::vector<Json>& points, const char* key, std::int64_t images);

/// One point of the sweep, or one budget, over all seeds.
struct ZapSummary {
  std::vector<double> thresholds;  ///< of the layers, means over seeds
  double saving = 0;               ///< share of all convolutions' multiply-adds, mean over seeds
  double least_saving = 0, largest_saving = 0;  ///< over seeds
  double net_saving = 0;                        ///< less those of the predictors
  double error = 0;                             ///< summed over layers, mean over seeds
  AccuracyChange zap, recalibrated, finetuned;
  bool has_recalibrated = false, has_finetuned = false;
};
/// Entry i of "points" or "chosen".
ZapSummary summarize(const ZapResults&, const char* list, std::size_t i);

/// Mean over seeds of the share that tally `key` has of the layer's activations, at a point.
double share_of(const ZapResults&, std::size_t layer, std::size_t point, const char* key);

/// "mask 5 (50 % computed), inner layers".
std::string name_of(const ZapResults&);
/// "-0.31 [-0.52, -0.10]".
std::string change_text(const AccuracyChange&);

}  // namespace numemu::experiments
