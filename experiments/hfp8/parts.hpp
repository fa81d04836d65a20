// The questions of hfp8; each adds its tables, findings, charts and sentences.
#pragma once
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/train_trial.hpp"

namespace numemu::experiments::hfp8 {

/// Rounding noise of normal numbers in the three formats (setting samples).
void add_rounding(const ExperimentRun&, Conclusion&);
/// Sums of `count` numbers, uniform with mean 1 and that deviation and rounded to 1-6-9, by a unit
/// over their exact sums: mean and standard error over `repeats` of them.
Json measured_sums(const std::string& unit, double deviation, std::int64_t count,
                   std::int64_t repeats, std::uint64_t seed);
/// Sums in a 1-6-9 register by chunk length (settings lengths, chunks, repeats).
void add_sums(const ExperimentRun&, Conclusion&);
/// Training with 1-4-3 forward and 1-5-2 backward, by master and loss scale; lost updates (settings
/// net, seeds and those of training).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// How an operand is rounded.
struct Operand {
  std::string format;
  double scale = 1;
};
/// Noise of the results of a linear layer of 64 inputs behind a ReLU and 32 outputs, `rows`
/// samples, all numbers of deviation 1 before the ReLU: normalised by the statistics of the float32
/// layer (`stale`) and by its own (`tuned`).
Json layer_noise(const Operand& weights, const Operand& inputs, std::int64_t rows,
                 std::uint64_t seed);
/// Statistics of batch normalisation re-estimated after quantization: a linear layer, then a
/// network (settings layer_rows, layers, norm_*).
void add_norms(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::hfp8
