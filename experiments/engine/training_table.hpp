// Methods of training compared over seeds: each run remembered, one table and one chart of them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/options.hpp"
#include "experiments/engine/chart.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

struct TrainingMethod {
  std::string name;  ///< in the table, in the chart and in the progress line; no part of the trial
  Json recipe = Json::object();  ///< {}: float32
  NumericsAround around = {};
};

/// What all methods share. The same seed gives every method the same initial weights and the same
/// batches, so that methods are compared seed by seed.
struct TrainingPlan {
  TrainTrial trial;  ///< without recipe and seed
  std::string data;
  std::vector<std::uint64_t> seeds;
  std::vector<TrainingMethod> methods;  ///< the first is the one the others are compared with
  /// By run_trials_at_once(): a training on each thread, to the same bytes. Each `around` must
  /// allow it.
  bool at_once = false;
};

struct TrainingTable {
  std::vector<std::vector<TrainOutcome>> outcomes;  ///< [method][seed]
  /// Per method: mean metric, mean difference to the first method with the paired t interval at
  /// 95 % (one seed: none), and the metric of each seed; per cent and points, or bits per
  /// character.
  ResultTable table;
  /// Bars of the mean difference of every other method to the first, with its paired interval.
  Chart chart;
};

/// Top-1 of each seed in per cent.
std::vector<double> top1_points(const std::vector<TrainOutcome>&);

/// Runs every method with every seed as trials of `run` (run_trials or, with `at_once`,
/// run_trials_at_once), seed by seed within a method.
/// `data` must be the set that `plan.data` names. Throws Error for no method, no seed, or what the
/// training refuses.
TrainingTable run_training(const ExperimentRun& run, const net::Dataset& data,
                           const TrainingPlan& plan);

}  // namespace numemu::experiments
