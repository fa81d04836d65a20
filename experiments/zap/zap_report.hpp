// Tables and charts of zero activation prediction.
#pragma once
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/zap/zap_summary.hpp"

namespace numemu::experiments {

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
