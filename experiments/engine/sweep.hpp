// Running a sweep: points in order, each row stored at once, progress through hooks; and how long
// it would take.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"

namespace numemu::experiments {

/// Hooks of long work. The engine neither prints nor reads the clock.
struct SweepHooks {
  std::function<double()> seconds = [] { return 0.0; };  ///< a clock, for times.jsonl only
  std::function<void(std::size_t done, std::size_t kept, std::size_t total, const Point&)> on_point;
  /// For trials (trials.hpp): called before each with its label, after the last with "".
  std::function<void(std::size_t done, std::size_t kept, std::size_t total,
                     const std::string& label)>
      on_trial;
  /// Of a point that runs, by its place in the shard; one call at a time.
  std::function<void(std::size_t point, const WorkState&)> on_work;
  std::string host;  ///< written to times.jsonl
  /// Called for warnings that --quiet keeps: damaged rows that are computed again.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

struct SweepSummary {
  std::size_t points = 0, computed = 0, kept = 0;
  std::string rows_path;
};

/// The points of a shard, in order.
std::vector<const Point*> shard_points(const SweepConfig&, const Shard&);

/// The data set and network of the sweep by name or file, batch normalisation folded if
/// configured. Throws Error for a network that does not fit the data.
std::pair<net::Dataset, TrainedNet> load_sweep(const SweepConfig&, const Folders&);
/// Throws Error where the memory budget does not hold the sweep, so many points of it at the same
/// time; returns the least that does (0 where no budget is set).
std::int64_t require_sweep_memory(const SweepConfig&, const net::Dataset&, const TrainedNet&,
                                  std::int64_t at_once = 1);
/// Opens the shard's rows in `folder` and writes sweep.json. Comes before the float32 work of a
/// workbench, so that errors cost no time. Existing::fresh empties times.jsonl and removes losses
/// too, but not for one shard of several: they are the others' as well. Throws Error for a sweep
/// without points, for a recipe that does not fit the network, and for a folder that RowStore
/// refuses or that holds shards of another sweep.
RowStore open_rows(const SweepConfig&, const net::Dataset&, const TrainedNet&,
                   const std::string& folder, const Shard&, Existing);

/// Runs the points that the rows of open_rows() lack and writes their rows, times.jsonl and
/// tensors.json into `folder`: a point on each thread where there are several for each thread and
/// the memory budget holds them, to the same bytes. A time is then that of the point over the
/// number of points that run.
SweepSummary run_sweep(const SweepConfig&, const Workbench&, RowStore&, const std::string& folder,
                       const Shard&, const SweepHooks&);

/// Histograms of the float32 tensors: {"tensors": [{layer, role, n, min, max, low, high, counts,
/// absmax}]}.
Json tensor_histograms(const Workbench&);

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
