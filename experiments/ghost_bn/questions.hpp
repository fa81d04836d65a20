// Parts of the experiment ghost-bn.
#pragma once
#include <cstdint>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::experiments::ghost_bn {

/// Samples of a small batch, which are those of a ghost batch, and of a large one.
struct Batches {
  std::int64_t small = 0, large = 0;

  std::int64_t ratio() const { return large / small; }
  /// The recipe with statistics over ghost batches.
  Json ghosts() const { return {{"norm", {{"ghost", small}}}}; }
};
/// Of the settings `batch` and `large`. Throws Error unless the large one is a multiple.
Batches batches(const Settings&);

/// Moments of the statistics of normal numbers (settings sizes, samples).
void add_statistics(const ExperimentRun&, Conclusion&);
/// A step of sgd on ghost batches and on as many workers (settings net, batch, large).
void add_workers(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// How the distance from the first weights grows at a constant rate (settings net, batch, large,
/// steps, seeds).
void add_walks(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::ghost_bn
