#include "cli/cluster.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/command.hpp"
#include "cli/network_options.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

/// The program of this process, which tasks run as well.
std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string about(double seconds) {
  return seconds < 100 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

void ClusterOptions::require_used() const {
  if (used()) return;
  if (tasks) throw usage_error("--tasks: expected --slurm or --parallel beside it");
  if (rounds) throw usage_error("--rounds: expected --slurm or --parallel beside it");
  if (!sbatch.empty()) throw usage_error("--sbatch: expected --slurm beside it");
}

api::ClusterRequest ClusterOptions::request(std::vector<std::string> last) const {
  if (parallel && !sbatch.empty()) throw usage_error("--sbatch: expected --slurm beside it");
  api::ClusterRequest asked;
  asked.program = own_program();
  asked.folder = std::filesystem::current_path().string();
  asked.tasks = tasks.value_or(0);
  asked.threads = threads->value_or(1);
  asked.memory = *memory;
  if (parallel) asked.at_once = std::max<std::int64_t>(1, omp_get_num_procs() / asked.threads);
  asked.rounds = rounds.value_or(slurm ? 1 : 0);
  asked.options = sbatch;
  asked.last = std::move(last);
  omp_set_num_threads(static_cast<int>(asked.threads));
  return asked;
}

void add_cluster(Command& command, ClusterOptions& options, bool rounds) {
  Option slurm = command.flag("--slurm", options.slurm,
                              "Submit the work to Slurm as an array of tasks and a last job");
  command
      .flag("--parallel", options.parallel,
            "Run it as tasks of GNU parallel, one for each processor (or --threads of them)")
      .excludes(slurm);
  command
      .option("--tasks N", options.tasks,
              rounds ? "Number of tasks" : "Number of tasks (default: by the estimated time)")
      .whole(1, 100'000);
  if (rounds) {
    command
        .option("--rounds N", options.rounds,
                "Arrays one after the other, for trials that need the results of earlier ones "
                "(default 1; the last job runs the rest)")
        .whole(1, 100);
  }
  command.option("--sbatch key=value", options.sbatch,
                 "An option of sbatch, as in partition=long or time=2:00:00 (repeatable)");
  options.threads = add_threads(command);
  options.memory = add_memory(command);
}

namespace {

void print_plan(const ClusterOptions& options, const api::ClusterPlan& plan) {
  if (options.slurm) {
    const std::string rounds =
        plan.rounds > 1
            ? fmt::format(", submitted {} times, each after the one before", plan.rounds)
            : "";
    fmt::print("# {}/slurm/array.sh{}\n{}\n# {}/slurm/last.sh, after the {}\n{}", plan.out, rounds,
               api::array_script(plan), plan.out, plan.rounds > 1 ? "last array" : "array",
               api::last_script(plan));
  } else {
    fmt::print("{}", api::parallel_lines(plan));
  }
}

void submit(const api::ClusterPlan& plan, bool quiet) {
  const api::Submitted jobs = api::submit(plan);
  if (!quiet) {
    if (plan.missing > 0)
      say("{} of {} points in {} tasks, the longest about {} here, {} MiB each", plan.missing,
          plan.points, plan.tasks.size(), about(plan.seconds), plan.limit_mebibytes());
    say("logs and scripts: {}/slurm; progress: squeue --me; lost tasks: the same command again",
        plan.out);
  }
  for (const std::string& id : jobs.arrays) fmt::print("array {}\n", id);
  fmt::print("last {}\n", jobs.last);
}

void run_tasks(const api::ClusterPlan& plan, bool quiet) {
  if (!quiet)
    say("{} tasks of {} by GNU parallel, {} at a time; logs in {}/parallel", plan.tasks.size(),
        plan.threads == 1 ? "one thread" : fmt::format("{} threads", plan.threads), plan.at_once,
        plan.out);
  const std::int64_t failed = api::run_parallel(plan, !quiet && ::isatty(STDERR_FILENO) == 1);
  if (failed > 0)
    say("numemu: {} of {} tasks failed ({}/parallel); what they left is computed now", failed,
        plan.tasks.size(), plan.out);
  omp_set_num_threads(omp_get_num_procs());
}

}  // namespace

bool start(const ClusterOptions& options, const api::ClusterPlan& plan, bool dry_run, bool quiet) {
  if (dry_run) {
    print_plan(options, plan);
    return false;
  }
  if (options.slurm) {
    submit(plan, quiet);
    return false;
  }
  run_tasks(plan, quiet);
  return true;
}

}  // namespace numemu::cli
