// Options of commands whose work tasks of a cluster can do: --slurm, --parallel and what they take.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/cluster/plan.hpp"
#include "cli/options.hpp"

namespace numemu::cli {

struct ClusterOptions {
  bool slurm = false, parallel = false;
  std::optional<std::int64_t> tasks, rounds;
  std::vector<std::string> sbatch;
  std::shared_ptr<const std::optional<std::int64_t>> threads;
  std::shared_ptr<const std::int64_t> memory;

  bool used() const { return slurm || parallel; }
  /// Throws Error for options that only a cluster has, beside none.
  void require_used() const;
  /// Sets the threads of a task in this process, too, which estimates them. `last`: arguments that
  /// the last job has besides.
  api::ClusterRequest request(std::vector<std::string> last) const;
};
/// Adds them with --threads and --memory. `rounds`: the work may need several.
void add_cluster(Command&, ClusterOptions&, bool rounds);

/// Prints the scripts, or the lines of GNU parallel (`dry_run`); else submits the plan and prints
/// the numbers of its jobs, or runs the tasks here. Whether the work goes on in this process, whose
/// threads are all again.
bool start(const ClusterOptions&, const api::ClusterPlan&, bool dry_run, bool quiet);

}  // namespace numemu::cli
