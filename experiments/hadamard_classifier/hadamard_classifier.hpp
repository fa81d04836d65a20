// The questions of hadamard-classifier; each adds its tables, findings, charts and sentences.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::hadamard {

/// H x for the Hadamard matrix of x.size(), a power of two, by butterflies of sums and differences.
std::vector<std::int32_t> fast_transform(std::vector<std::int32_t> x);

/// The largest |cosine| of two of the first `rows` rows, cut to the first `columns` columns.
double worst_cosine(std::int64_t rows, std::int64_t columns);

/// Whole matrices: orthogonal rows, the fast transform (setting sizes).
void add_matrices(const ExperimentRun&, Conclusion&);

/// Networks with a fixed and with a trained classifier, paired by seed (settings nets, formats,
/// epochs, ...).
void add_networks(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::hadamard
