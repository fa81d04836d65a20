// numemu experiment: runs a named experiment; prints rows, tables and verdicts.
#include <fmt/format.h>

#include "api/studies.hpp"
#include "api/text/table.hpp"
#include "cli/cluster.hpp"
#include "cli/command.hpp"
#include "cli/experiment_run.hpp"
#include "cli/network_options.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

constexpr const char* kAll = "all";  // in place of a name: every experiment

struct ExperimentOptions {
  api::ExperimentRequest asked;
  ClusterOptions cluster;
  bool dry_run = false, json = false, quiet = false, strict = false;
};

int list(const ExperimentOptions& options) {
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const experiments::Experiment* experiment : experiments::all_experiments()) {
    rows.push_back({experiment->name, experiment->question});
    Json settings = Json::array();
    for (const experiments::Setting& setting : experiment->settings) {
      settings.push_back({{"key", setting.key},
                          {"smoke", setting.smoke},
                          {"default", setting.standard},
                          {"full", setting.full},
                          {"doc", setting.doc}});
    }
    all.push_back(
        {{"name", experiment->name}, {"summary", experiment->question}, {"settings", settings}});
  }
  if (options.json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print("{}", api::text_table({"experiment", "question"}, rows));
  }
  return kFine;
}

/// Shows or submits the tasks, or runs them here; whether the experiment goes on in this process.
bool start_tasks(const ExperimentOptions& options, const api::ExperimentRequest& asked) {
  const api::ClusterPlan plan = api::plan_cluster(asked, options.cluster.request({}));
  return start(options.cluster, plan, options.dry_run, options.quiet);
}

int run_all(const ExperimentOptions& options) {
  if (options.json) throw usage_error("--json: expected one experiment");
  bool failed = false;
  const api::AllExperiments all =
      api::run_all_experiments(options.asked, [&](const api::ExperimentRequest& asked) {
        failed |= run_one(asked, options.quiet).failed();
      });
  for (const std::string& error : all.errors) fmt::print(stderr, "numemu: {}\n", harmless(error));
  if (!all.answer.empty()) fmt::print("{}\n", all.answer);
  fmt::print("{}\n", harmless(all.out));
  return !all.errors.empty() || (options.strict && failed) ? kMismatch : kFine;
}

int run_experiment(const ExperimentOptions& options) {
  options.cluster.require_used();
  if (options.dry_run && !options.cluster.used())
    throw usage_error("--dry-run: expected --slurm or --parallel beside it");
  if (options.asked.name.empty()) return list(options);
  const api::ExperimentRequest asked = options.asked;
  if (options.cluster.used() && !start_tasks(options, asked)) return kFine;
  if (asked.name == kAll) return run_all(options);
  return run_and_print(asked, {options.json, options.quiet, options.strict});
}

}  // namespace

void add_experiment(Program& program) {
  auto [command, options] = program.command<ExperimentOptions>("experiment", run_experiment);
  command.option("name NAME", options.asked.name, "Experiment, or all").suggest([] {
    std::vector<std::string> names = {kAll};
    for (const experiments::Experiment* experiment : experiments::all_experiments())
      names.push_back(experiment->name);
    return names;
  });
  const std::vector<api::Option> asked = api::options_of(options.asked);
  add_options(command, asked, {"settings", "size", "seed", "out", "figures", "fresh"});
  command.flag("--strict", options.strict,
               "Exit with 1 if a finding fails (default: 0, a failed finding is a result)");
  command.flag("--json", options.json, "Print the conclusion as JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_options(command, asked, {"shard"});
  command.flag("--dry-run", options.dry_run, "Print the scripts of --slurm, then stop");
  add_cluster(command, options.cluster, true);
}

}  // namespace numemu::cli
