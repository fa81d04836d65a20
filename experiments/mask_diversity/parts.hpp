// The questions of mask-diversity; each adds its tables, findings, charts and sentences.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments {

/// A network whose weights are looked at.
struct LabelledNet {
  std::string label;
  const net::Graph* graph = nullptr;
};

/// How many masks each pattern admits, per 8 x 8 elements and for the masked weights of each
/// network.
void add_counts(const std::vector<LabelledNet>&, Conclusion&);

/// Which masks magnitudes really give: of normal deviates (settings blocks, tiles), and of trained
/// weights.
void add_censuses(const ExperimentRun&, const std::vector<LabelledNet>&, Conclusion&);

/// What add_training trains, but for the masks. Throws Error for settings that cannot be served.
TrainTrial training_under_masks(const ExperimentRun&, const net::Dataset&);
/// How masks change while the network trains under them (settings train_net, train_samples, epochs,
/// refresh).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Whether one-shot accuracy rises with diversity, on shipped networks (setting nets) and on
/// networks trained afresh (trained).
void add_one_shot(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments
