// Top-1, loss and scores of a network on a split of a data set.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/train/score.hpp"
#include "emu/stats/finite_counts.hpp"

namespace numemu::net {

class Dataset;

struct PlannedPass;

enum class Split { train, validation, calibration, test };

struct Evaluation {
  std::int64_t samples = 0;
  /// Classes: samples x Dataset::targets_per_sample(); samples where targets are no classes.
  std::int64_t n = 0;
  std::int64_t correct = 0;  ///< of the targets
  double loss = 0;  ///< mean cross-entropy of a target, or squared error of a sample; else NaN
  std::vector<std::uint8_t> right;  ///< one entry per target; empty without classes
  /// The class of each target's largest logit, -1 for none; empty without classes.
  std::vector<std::int32_t> answers;
  stats::FiniteCounts outputs;      ///< of the network's outputs
  std::vector<ScoreTable> tables;   ///< one of each score
};

/// Measured on ResNet-20 and LeNet: activations of 32 images stay in the caches of one core.
inline constexpr std::int64_t kEvaluationBatch = 32;

/// Top-1 and loss are those of the first output, tables those of any; an output without a name is
/// the network's last value. On the first `count` samples of a split (0 = all), in batches of a fixed size over OpenMP
/// threads.
/// Positions without a class count neither for top-1 nor for the loss. Throws Error where outputs
/// do not fit the targets.
Evaluation evaluate(const Graph&, const Dataset&, Split, std::int64_t count, Numerics&,
                    const std::vector<OutputScore>& = {}, std::int64_t batch = kEvaluationBatch);

/// A batch of evaluate() on each thread, for those who refuse before they begin; `beside` elements
/// are held by then.
PlannedPass evaluation_pass(const Graph&, std::int64_t samples, std::int64_t beside = 0,
                            std::int64_t batch = kEvaluationBatch);

/// evaluate() of `graph`; scores with `reference` get the outputs of the graph of that name in
/// float32, which has the same inputs and outputs.
Evaluation evaluate_against(const Graph& graph, const Graph& reference, const Dataset&, Split,
                            std::int64_t count, Numerics&, const std::vector<OutputScore>& = {},
                            std::int64_t batch = kEvaluationBatch);

}  // namespace numemu::net
