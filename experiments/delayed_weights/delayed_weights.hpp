// The questions of delayed-weights, each with its findings, tables and charts.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::delayed_weights {

/// Quadratics a little below and above the limit of stability (settings momenta, delays).
void add_limits(const ExperimentRun&, Conclusion&);
/// The largest rate at which SGD with that momentum is stable under a delay of 1: log2 of it, the
/// mean over the seeds.
struct RateLimit {
  std::string net;
  double momentum = 0, octaves = 0;
};
/// The largest stable rates of a network with and without delay, paired by seed (settings rate_*).
std::vector<RateLimit> add_rates(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// Networks trained with a delay of 1 and without, paired by seed (settings nets, optimizers,
/// epochs, ...). A finding of SGD at a rate above one of the limits says how far above it is.
void add_trainings(const ExperimentRun&, const net::Dataset&, const std::vector<RateLimit>&,
                   Conclusion&);

/// Idle time, activations and versions of equal stages under each schedule, simulated beside their
/// closed forms (settings depths, per_depth, batches).
void add_schedules(const ExperimentRun&, Conclusion&);
/// Periods of equal stages with links, simulated beside their closed forms (settings depths, links,
/// batches).
void add_links(const ExperimentRun&, Conclusion&);
/// Networks cut into stages: the planned period beside the simulated one, and the bytes that the
/// schedules hold (settings cut_nets, devices, memory, samples, micro_batches, mac_ps, link_ps,
/// reduce_ps, batches).
void add_plans(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::delayed_weights
