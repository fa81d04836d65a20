// The questions of transposable; each adds its tables, findings, charts and sentences.
#pragma once
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// What each pattern prunes of normal deviates (setting blocks), beside closed forms; how near the
/// greedy masks come to the best.
void add_losses(const ExperimentRun&, Conclusion&);

/// How many groups of an unstructured sparse tensor break N:M: of random placement (setting
/// placed), and of trained layers.
void add_conversion(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Trained networks pruned once under each pattern (setting patterns), with and without repair:
/// magnitude, outputs of layers, accuracy.
void add_networks(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments
