// The trainings of binarized, from its settings.
#pragma once
#include "experiments/engine/training_study.hpp"

namespace numemu::experiments::binarized {

/// Without methods (settings net, data, learning_rate, epochs, batch, train_samples, eval_samples,
/// seeds). All methods have Adam at one rate and no weight decay.
TrainingPlan plan_of(const ExperimentRun&);

}  // namespace numemu::experiments::binarized
