// The training loop: shuffled epochs, an optimizer, a schedule, metrics per epoch; the same bits
// for any thread count and any interruption.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/train/metrics.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/run_state.hpp"

namespace numemu::net {

class Dataset;
class Ranks;

struct TrainHooks {
  /// Processes that share the workers; null: this one alone. Only rank 0 writes a RunFile.
  Ranks* ranks = nullptr;
  /// Once, before the first step: what a resumed run did before it.
  std::function<void(const RunState&)> on_start = {};
  /// Before every step.
  std::function<void(double learning_rate)> on_rate = {};
  std::function<void(std::int64_t step, std::int64_t steps, double loss)> on_step = {};
  std::function<void(const EpochMetrics&)> on_epoch = {};
};

/// Where a run keeps its state. With an empty path it keeps none.
struct RunFile {
  std::string path;
  std::int64_t every = 0;  ///< steps between two states; 0: one after each epoch alone
  bool fresh = false;      ///< a state that is there is not read
  RunIdentity identity;    ///< of the numerics, from the caller, beside options, net and data
};

/// Throws Error for what train() refuses before its first step: options out of their range or that
/// neither the network nor the data set serves.
void require_fit(const Graph&, const Dataset&, const TrainOptions&);

/// Steps of a run that patience does not end; with image sizes those that the seed draws.
std::int64_t planned_steps(const TrainOptions&, const Dataset&);

/// Trains in place, each step as in step.hpp. Never reads the test split. With a RunFile whose
/// state is there the run continues from it (see read_run_state), and the result is that of an
/// uninterrupted run, bit for bit. on_epoch is called after the epoch's state is stored.
std::vector<EpochMetrics> train(Graph&, const Dataset&, const TrainOptions&, Numerics&,
                                const TrainHooks& = {}, const RunFile& = {});

}  // namespace numemu::net
