// Sweeps and experiments split over tasks that Slurm or GNU parallel runs: plan, scripts, start.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "api/context.hpp"
#include "api/studies.hpp"

namespace numemu::api {

/// What a person chooses of the split.
struct ClusterRequest {
  std::string program;       ///< the file that tasks run
  std::string folder;        ///< that they run in, where relative paths begin
  std::int64_t tasks = 0;    ///< 0: a sweep's from its estimate
  std::int64_t threads = 1;  ///< of a task
  std::int64_t memory = 0;   ///< --memory of a task, in bytes; 0: a sweep's from its estimate
  std::int64_t at_once = 0;  ///< tasks that this machine runs at a time; 0: Slurm decides
  /// Of an experiment, whose tasks end where trials need the results of others: arrays one after
  /// the other; of this machine 0: as many as store something.
  std::int64_t rounds = 1;
  std::vector<std::string> options = {};  ///< of sbatch: "partition=long"
  std::vector<std::string> last = {};     ///< further arguments of the last job alone
};

/// Tasks that each compute a shard, and a last job that takes their rows over, computes what a task
/// left, and concludes. All paths are absolute.
struct ClusterPlan {
  std::string name, out, folder;
  std::vector<std::string> command;  ///< of the last job; a task adds --shard
  std::vector<std::string> last;     ///< what the last job adds
  std::int64_t shards = 1;
  std::vector<std::int64_t> tasks;      ///< the shards with something to do
  std::size_t points = 0, missing = 0;  ///< of a sweep
  std::int64_t threads = 1;
  std::int64_t memory = 0;  ///< --memory of a task, in bytes; 0: not known
  double seconds = 0;       ///< that the longest task is estimated to take; 0: not known
  std::int64_t at_once = 0, rounds = 1;
  std::vector<std::string> options;

  /// Of Slurm, in minutes: three times the estimate, which was made on another machine maybe, and
  /// ten minutes.
  std::int64_t limit_minutes() const;
  /// Of Slurm, in MiB: beside what --memory bounds the program and its threads.
  std::int64_t limit_mebibytes() const { return (memory + (std::int64_t{257} << 20) - 1) >> 20; }
};

/// Merges what shards left, checks every point as a run would, and estimates the rest on this
/// machine with the threads of a task (within seconds). With `dry` nothing is written or merged.
/// Tasks of Slurm take ten minutes at least, those of one machine (`at_once`) a minute, and twenty
/// times what each spends on loading and float32, if the sweep is that long. Throws Error for a
/// shard, for more tasks than points, for options of sbatch that are none and for paths that a
/// script cannot hold.
ClusterPlan plan_cluster(const Sweep&, const SweepRequest&, ClusterRequest, const Context&,
                         bool dry);
/// The trials and points of an experiment have no estimate: it needs the number of tasks, on this
/// machine as many as run at a time.
ClusterPlan plan_cluster(const ExperimentRequest&, ClusterRequest);
/// The plan of any command, whose words are those behind the program's.
ClusterPlan plan_tasks(const std::string& name, const std::string& out,
                       std::vector<std::string> command, const ClusterRequest&);

/// "0-3,7": as --array of sbatch takes them.
std::string ranges_of(const std::vector<std::int64_t>& numbers);
/// What sbatch is given: the array and the job behind it. Both may be submitted by hand.
std::string array_script(const ClusterPlan&);
std::string last_script(const ClusterPlan&);
/// A line of shell for each task: the input of GNU parallel.
std::string parallel_lines(const ClusterPlan&);

struct Submitted {
  std::vector<std::string> arrays;  ///< numbers of the jobs
  std::string last;
};
/// Writes the scripts into `out`/slurm and submits them. Throws Error with what sbatch says, and
/// where jobs of the folder are queued or running.
Submitted submit(const ClusterPlan&);
/// Runs the tasks with GNU parallel, whose files are in `out`/parallel, round by round, and returns
/// how many of the last failed. `bar`: it shows how far it is. Throws Error where it cannot run.
std::int64_t run_parallel(const ClusterPlan&, bool bar);

}  // namespace numemu::api
