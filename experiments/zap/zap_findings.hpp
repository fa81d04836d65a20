// Predictions about zero activation prediction beside what was measured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/zap/zap_summary.hpp"

namespace numemu::experiments {

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

}  // namespace numemu::experiments
