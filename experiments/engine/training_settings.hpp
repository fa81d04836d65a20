// The training that an experiment's settings describe, and the seeds by which its runs are paired.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

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

}  // namespace numemu::experiments
