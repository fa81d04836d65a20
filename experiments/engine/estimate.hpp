// An estimate of the time of a sweep, within two or three seconds.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/engine/workbench.hpp"

namespace numemu::experiments {

struct SweepEstimate {
  std::size_t points = 0, kept = 0;  ///< of the shard; rows that are there already
  /// Of loading, the float32 workbench and the points that are missing.
  double seconds = 0;
  /// The part of it that every shard of the points would take again: all but the points themselves.
  double shared = 0;
  std::int64_t memory = 0;   ///< the least budget that holds it, in bytes; 0 where none is set
  std::vector<double> each;  ///< seconds of every point of the shard, 0 where its row is there
};

/// Points with the same unit take alike, with blocks and without: the mean of their times in
/// `folder`; without any, what points of the group take in trials of all their parts on fewer
/// samples. Loading, the workbench and float32 are timed as well. Tries take `budget` seconds in
/// all (one of each group at least). `clock` gives seconds. With Existing::fresh nothing is kept.
SweepEstimate estimate_sweep(const SweepConfig&, const Folders&, const std::string& folder,
                             const Shard&, Existing, const std::function<double()>& clock,
                             double budget = 2.0);

}  // namespace numemu::experiments
