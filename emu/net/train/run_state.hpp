// A run between two steps, stored so that it continues with the same bits after any interruption.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/train/metrics.hpp"

namespace numemu {
class Json;
}

namespace numemu::net {

class Optimizer;

/// What must agree for a run to be continued, by name ("learning_rate", "data", "recipe").
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

/// The parameters of the epoch with the lowest validation loss.
struct BestEpoch {
  std::int64_t epoch = -1;  ///< -1: none yet
  double loss = std::numeric_limits<double>::infinity();
  std::vector<Tensor> values;  ///< in parameters() order
};

/// The progress of a run, besides the graph, the optimizer and the numerics.
struct RunState {
  std::int64_t step = 0, epoch = 0;
  EpochSums sums;  ///< of the epoch begun
  std::vector<EpochMetrics> history;
  BestEpoch best;
  bool finished = false;
};

/// What is stored and restored together.
struct Run {
  Graph& graph;
  Optimizer& optimizer;
  Numerics& numerics;
  RunState& state;
};

/// Writes a safetensors file atomically: parameters, buffers, optimizer state, best parameters, and
/// as bytes what Numerics::save_state() gives; the rest is metadata.
void write_run_state(const std::string& path, const RunIdentity&, const Run&);

/// Restores the run if the file is there: false if it is not, or if it is the end of a run of
/// another identity, which holds nothing that its checkpoint does not. Throws Error naming the file
/// and the first difference when it is the middle of a run of another identity, and Error for a
/// damaged file; the run is as it was then.
bool read_run_state(const std::string& path, const RunIdentity&, const Run&);

/// Everything of the state but the best values; `scalars` are the optimizer's.
Json numbers_json(const RunState&, std::span<const double> scalars);

/// The state that numbers_json() gave. Throws Error("WHERE: KEY: expected ...") where the JSON is
/// not of that form.
RunState read_numbers(const Json&, const std::string& where, std::span<double> scalars);

}  // namespace numemu::net
