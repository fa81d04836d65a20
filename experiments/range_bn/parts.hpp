// The questions of range-bn; each adds its tables, findings, charts and sentences.
#pragma once
#include <memory>

#include "emu/net/data/dataset.hpp"
#include "emu/net/numerics.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::range_bn {

/// Deviations estimated from ranges of normal numbers (settings sizes, samples).
void add_statistics(const ExperimentRun&, Conclusion&);

/// The angle between numbers and their min-max codes: normal numbers and the weights of a network
/// (settings numbers, repeats, bits, net, gradient_train).
void add_angles(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Networks trained with batch and range normalisation, with the backward of the variance on
/// ranges, and in 8 bits (settings net, epochs, batch, train_samples, eval_samples, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

/// Numerics under which the forward pass of every norm is that of `inner` and its backward pass
/// takes the statistics for those of the variance: a contrast, not a rule that anyone should use.
std::unique_ptr<net::Numerics> variance_backward(net::Numerics& inner);

}  // namespace numemu::experiments::range_bn
