// Studies of training: the training that an experiment's settings describe, methods of it compared
// over seeds, and the table and chart of what they cost.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

struct TrainingNeeds {
  std::string optimizer = {};    ///< empty: the setting `optimizer`, else the network's own
  std::int64_t least_batch = 1;  ///< what the network or the question requires
  std::string prefix = {};       ///< of the settings' names, where an experiment has two trainings
};

/// Of the settings `epochs`, `batch`, `train_samples` and `eval_samples`, at the rates recommended
/// for the network and the optimizer, or at those of the settings `lr` and `warmup` (in steps)
/// where an experiment has them; the recipe is float32. Throws Error naming the setting.
TrainTrial training_of(const Settings&, const std::string& net, const TrainingNeeds& = {});

/// As many from the run's seed on as the setting `key` says, 1 to 1000.
std::vector<std::uint64_t> seeds_of(const ExperimentRun&, const std::string& key = "seeds");

struct TrainingMethod {
  std::string name;  ///< in the table, in the chart and in the progress line; no part of the trial
  Json recipe = Json::object();  ///< {}: float32
  NumericsAround around = {};
  std::int64_t epochs = 0;        ///< 0: those of the plan
  Json counted = Json::object();  ///< members of the point beside those of the training
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
  std::string prefix = {};  ///< of the labels

  std::vector<std::string> names() const;
  TrainTrial trial_of(std::size_t method, std::uint64_t seed) const;
  /// point_of() the trial, and what the method counts.
  Json point(std::size_t method, std::uint64_t seed, const net::Dataset&) const;
};

/// Trains and measures every method with every seed: `measure` has a TrainTrial and the place of
/// its method.
template <class Measured, class Measure>
Study<Measured> run_training_study(const ExperimentRun& run, const net::Dataset& data,
                                   const TrainingPlan& plan, const Measure& measure) {
  return run_study<Measured>(run, {plan.names(), plan.seeds, plan.at_once, plan.prefix},
                             [&](std::size_t method, std::uint64_t seed) -> StudyRun<Measured> {
                               return {plan.point(method, seed, data),
                                       [=, &measure, trial = plan.trial_of(method, seed)] {
                                         return measure(trial, method);
                                       }};
                             });
}

struct TrainingTable {
  Study<TrainOutcome> study;
  SeedFigures top1;  ///< per cent
  /// Per method: mean metric, mean difference to the first method with the paired t interval at
  /// 95 % (one seed: none), and the metric of each seed; per cent and points, or bits per
  /// character.
  ResultTable table;
  /// Bars of the mean difference of every other method to the first, with its paired interval.
  Chart chart;
};

/// A study of the accuracy alone. `data` must be the set that `plan.data` names. Throws Error for
/// no method, no seed, or what the training refuses.
TrainingTable run_training(const ExperimentRun& run, const net::Dataset& data,
                           const TrainingPlan& plan);

}  // namespace numemu::experiments
