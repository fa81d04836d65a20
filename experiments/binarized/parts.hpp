// The questions of binarized; each adds its tables, findings, charts and sentences.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::binarized {

/// Products of signs against popcount, exactly (setting lengths).
void add_xnor(const ExperimentRun&, Conclusion&);
/// What powers of two do to normal numbers, against the closed forms (settings deviations,
/// samples).
void add_shifts(const ExperimentRun&, Conclusion&);
/// A binarized network after training: the first layer by bit planes, folded thresholds, the
/// shift-based variance of its sums, stored bits (settings net, epochs, ...).
void add_network(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// Networks of few bits beside float32, paired by seed (the same settings and seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::binarized
