// The questions of data-free; each adds its tables, findings, charts and sentences.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::data_free {

/// Independent numbers of the targets' law against the floor in closed form (setting channels).
void add_floor(const ExperimentRun&, Conclusion&);

/// Samples of every source: their divergence, and accuracy of the quantized network whose ranges
/// and batch-norm statistics come from them (all other settings).
void add_sources(const ExperimentRun&, Conclusion&);
/// The same on a data set that is loaded, in place of that of the setting.
void add_sources_on(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::data_free
