// Samples without data: the divergence of independent real data, which is their floor, and sources.
#pragma once
#include <cstdint>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::data_free {

/// n E[KL(N(mu, s2) || N(m, v))] with m and v those of n independent numbers of N(mu, s2), n > 3:
/// n / 2 (psi((n - 1) / 2) - ln(n / 2) - 1 + (n + 1) / (n - 3)), which tends to 1.
double floor_divergence(std::int64_t n);

/// Independent numbers of the targets' law against the floor in closed form (setting channels).
void add_floor(const ExperimentRun&, Conclusion&);

/// Samples of every source: their divergence, and accuracy of the quantized network whose ranges
/// and batch-norm statistics come from them (all other settings).
void add_sources(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::data_free
