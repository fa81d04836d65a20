// numemu experiment: runs a named experiment; prints rows, tables and verdicts.
#include <fmt/format.h>

#include <algorithm>

#include "api/studies.hpp"
#include "api/text/table.hpp"
#include "cli/cluster.hpp"
#include "cli/command.hpp"
#include "cli/network_options.hpp"
#include "cli/progress.hpp"
#include "cli/report_files.hpp"
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

/// Predicted, measured, interval of a finding; "-" where there is none.
std::vector<std::string> cells_of(const experiments::Member<experiments::FindingRow>& finding) {
  if (!finding) return {"-", "-", "-"};
  return {number_text(finding->predicted, "{:.4g}"), number_text(finding->measured, "{:.4g}"),
          interval_text(finding->ci95, "{:.4g}")};
}

/// Tables, failed claims, sentences, and last, where a terminal shows it, the conclusion.
void print(const experiments::ExperimentFile& file) {
  for (const experiments::ResultTable& table : file.tables)
    fmt::print("{}\n{}\n", harmless(table.title), api::text_table(table.header, table.rows));
  std::vector<std::vector<std::string>> findings, claims;
  std::size_t checks = 0, passed = 0;
  for (const experiments::FindingRow& finding : file.findings) {
    const bool holds = finding.judged() == Verdict::holds;
    checks += finding.is_self_check();
    passed += finding.is_self_check() && holds;
    if (holds) continue;
    findings.push_back(cells_of(finding));
    findings.back().insert(findings.back().begin(), to_string(finding.judged()));
    findings.back().push_back(finding.what);
  }
  if (!findings.empty()) {
    fmt::print("{}\n", api::text_table({"verdict", "predicted", "measured", "95 % interval",
                                        "finding that does not hold"},
                                       findings));
  }
  for (const std::string& sentence : file.sentences) fmt::print("{}\n", harmless(sentence));
  if (checks > 0) fmt::print("Self-checks: {} of {} hold.\n", passed, checks);
  for (const experiments::ClaimRow& claim : file.claims) {
    claims.push_back(cells_of(claim.worst));
    claims.back().insert(claims.back().begin(),
                         {claim.verdict ? to_string(*claim.verdict) : "not tested",
                          fmt::format("{}, {}, {}", claim.holds, claim.undecided, claim.fails)});
    claims.back().push_back(claim.claim);
  }
  if (!claims.empty()) {
    fmt::print("\n{}\n",
               api::text_table({"verdict", "hold, undecided, fail", "predicted", "measured",
                                "95 % interval", "claim (numbers: its worst finding)"},
                               claims));
  }
}

/// Shows or submits the tasks, or runs them here; whether the experiment goes on in this process.
bool start_tasks(const ExperimentOptions& options, const api::ExperimentRequest& asked) {
  const api::ClusterPlan plan = api::plan_cluster(asked, options.cluster.request({}));
  return start(options.cluster, plan, options.dry_run, options.quiet);
}

/// Runs one experiment behind a bar.
api::ExperimentResult run_one(const ExperimentOptions& options,
                              const api::ExperimentRequest& asked) {
  const std::string& name = asked.name;
  api::Context context = program_context(options.quiet);
  std::unique_ptr<Progress> progress;
  context.on_work = [&, bench = std::shared_ptr<Progress>()](const api::WorkState& at) mutable {
    if (!bench)
      bench =
          std::make_shared<Progress>(name, static_cast<std::int64_t>(at.total), "", options.quiet);
    bench->show(at.done, std::string(at.phase), at.free);
    if (at.done >= at.total) bench.reset();
  };
  experiments::SweepHooks hooks;
  hooks.on_point = [&](std::size_t done, std::size_t kept, std::size_t total,
                       const experiments::Point& point) {
    if (!progress) {
      progress = std::make_unique<Progress>(name, static_cast<std::int64_t>(total), "points",
                                            options.quiet);
    }
    progress->show(static_cast<std::int64_t>(done), point.where,
                   static_cast<std::int64_t>(std::min(done, kept)));
  };
  std::size_t trials = 0;  // total of the bar: an experiment may run several sets of trials
  hooks.on_trial = [&](std::size_t done, std::size_t kept, std::size_t total,
                       const std::string& label) {
    if (!progress || done == 0 || total != trials) {
      trials = total;
      progress = std::make_unique<Progress>(name, static_cast<std::int64_t>(total), "trials",
                                            options.quiet);
    }
    progress->show(static_cast<std::int64_t>(done), label,
                   static_cast<std::int64_t>(std::min(done, kept)));
  };
  return api::run_experiment(asked, context, hooks);
}

int run_all(const ExperimentOptions& options) {
  if (options.json) throw usage_error("--json: expected one experiment");
  bool failed = false;
  const api::AllExperiments all = api::run_all_experiments(
      options.asked,
      [&](const api::ExperimentRequest& asked) { failed |= run_one(options, asked).failed(); });
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
  api::ExperimentRequest asked = options.asked;
  if (options.cluster.used() && !start_tasks(options, asked)) return kFine;
  if (asked.name == kAll) return run_all(options);
  const api::ExperimentResult result = run_one(options, asked);
  if (!result.concluded) {
    fmt::print("{}\n", harmless(result.out));
    return kFine;
  }
  if (options.json) {
    fmt::print("{}\n", json_of(result.file).dump(2));
  } else {
    print(result.file);
    fmt::print("{}\n", harmless(result.out));
  }
  return options.strict && result.failed() ? kMismatch : kFine;
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
  command.option("--set key=value", options.asked.settings, "Change a setting (repeatable)");
  command
      .option("--size SIZE", options.asked.size,
              "smoke (20 s), default (10 minutes) or full (longer)")
      .show_default();
  command.option("--seed", options.asked.seed, "Seed of all random draws")
      .show_default()
      .whole(0, std::int64_t{1} << 53);
  command.option("--out DIR", options.asked.out,
                 "Folder for rows and report (default out/NAME-SIZE)");
  command.flag("--fresh", options.asked.existing,
               "Delete existing rows and compute the float32 baseline again, ignoring the cache",
               api::Existing::fresh);
  command.flag("--strict", options.strict,
               "Exit with 1 if a finding fails (default: 0, a failed finding is a result)");
  command.flag("--json", options.json, "Print the conclusion as JSON");
  command.flag("--quiet", options.quiet, "No progress");
  command.option("--shard i/n", options.asked.shard,
                 "Run only the trials i, i+n, i+2n, ... and conclude nothing");
  command.flag("--dry-run", options.dry_run, "Print the scripts of --slurm, then stop");
  add_cluster(command, options.cluster, true);
}

}  // namespace numemu::cli
