// What trials of zap say: summaries over seeds, findings, tables and charts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/stats/interval.hpp"
#include "experiments/engine/experiment.hpp"
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

// Predictions about zero activation prediction beside what was measured.

/// A share is predicted well where it is this near.
inline constexpr double kZapShareHolds = 0.01;
/// Root of the mean squared residual of a logistic fit to an error curve (specification of
/// sparsity, 5c).
inline constexpr double kZapFitHolds = 0.02;
/// What the method is to reach: so many multiply-adds saved for less than so many points of top-1.
/// The saving is ZapSummary::saving: the mean over seeds of the share that predictors leave out of
/// all convolutions' multiply-adds on the test images, their own multiply-adds not subtracted.
inline constexpr double kZapSaving = 0.25, kZapLoss = 0.005;

/// A point of a sweep, or a budget's.
struct ZapBest {
  const ZapResults* of = nullptr;
  ZapSummary at;
  AccuracyChange change;
};
/// What is done to the network once predictors are at work.
enum class ZapCare : std::uint8_t { none, recalibrated, finetuned };
/// "the network as it is", "statistics estimated anew", "fine-tuning".
std::string to_string(ZapCare);
/// Those that some point has.
std::vector<ZapCare> cares_of(const std::vector<ZapResults>&);

/// The largest saving for a mean loss below kZapLoss among the points where that was done; `of` is
/// null where there is none.
ZapBest best_of(const std::vector<ZapResults>&, ZapCare);

/// Per layer and mask, of the first seed: the bound on savings, the error of a random predictor,
/// the fits, errors at optimised thresholds; over everything the identities; last the aim, for
/// in every case. Shares hold within kZapShareHolds, fail where Holm's procedure over all of
/// them rejects that they are so near, and are undecided else. The aim holds where Holm's procedure
/// over all points rejects that one that saves enough loses kZapLoss or more; its interval is the
/// span of the saving over seeds.
std::vector<Finding> zap_findings(const std::vector<ZapResults>&);

// Tables and charts of zero activation prediction.

/// Accuracy against multiply-adds saved, a row per threshold and mask.
ResultTable sweep_table(const std::vector<ZapResults>&);
/// Hits and misses of every layer and in total, at one point of the sweep.
ResultTable miss_table(const std::vector<ZapResults>&, std::size_t point);
/// Thresholds chosen for each budget of error.
ResultTable budget_table(const std::vector<ZapResults>&);

/// The three charts the method's paper draws: accuracy against saving, error against saving of each
/// layer beside a random predictor, kinds of mispredictions.
std::vector<Chart> zap_charts(const std::vector<ZapResults>&, std::size_t point);

}  // namespace numemu::experiments
