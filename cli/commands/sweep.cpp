// numemu sweep: a grid of recipes over one network, resumed where it stopped, ending in a report.
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "api/studies.hpp"
#include "cli/cluster.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"
#include "cli/progress.hpp"
#include "cli/report_files.hpp"
#include "cli/talk.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {
namespace {

struct SweepOptions {
  api::SweepRequest asked;
  GateOption gate;
  ClusterOptions cluster;
  bool resume = false, dry_run = false, quiet = false, json = false;
};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// Names for the end of a line, short where that leaves them different.
std::vector<std::string> short_names(const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 120;
  std::map<std::string, int> uses;
  for (const std::string& name : names) ++uses[shortened(name, kLongest)];
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const std::string brief = shortened(name, kLongest);
    out.push_back(uses[brief] == 1 ? brief : name);
  }
  return out;
}

int dry_run(const api::Sweep& sweep, const api::Context& context) {
  for (std::size_t i = sweep.shard.index; i < sweep.names.size(); i += sweep.shard.count)
    fmt::print("{:4}  {}\n", i, harmless(sweep.names[i]));
  const experiments::SweepEstimate estimate = api::estimate(sweep, context);
  const auto rounded = static_cast<std::int64_t>(estimate.seconds + 0.5);
  fmt::print("{}, {}{} on this machine\n",
             counted(static_cast<std::int64_t>(estimate.points), "point"),
             estimate.kept > 0 ? fmt::format("{} of them already present, ", estimate.kept) : "",
             rounded == 0 ? "less than a second" : "about " + counted(rounded, "second"));
  return kFine;
}

/// Runs the points, showing how far they are.
experiments::SweepSummary run_points(const api::Sweep& sweep, api::Context context, bool quiet) {
  const std::vector<std::string> labels = short_names(sweep.names);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;  // else one line for each point
  std::unique_ptr<Progress> progress;
  bool points = false;  // else what they share
  context.on_work = [&](const api::WorkState& at) {
    if (!progress)
      progress =
          std::make_unique<Progress>("sweep", static_cast<std::int64_t>(at.total), "", quiet);
    progress->show(at.done, std::string(at.phase), at.free);
  };
  context.warn = [&](const std::string& what) {
    progress.reset();
    say_line(what);
  };
  return api::run_sweep(
      sweep, context,
      [&](const api::PointProgress& at) {
        if (!points) progress.reset();  // ends the line of the first bar
        points = true;
        if (!progress)
          progress =
              std::make_unique<Progress>("sweep", static_cast<std::int64_t>(at.total), "", quiet);
        const std::string note = fmt::format("point {} of {}: {}", at.point + 1, at.points,
                                             labels[sweep.number_of(at.point)]);
        progress->show(at.done,
                       terminal && !at.phase.empty() ? fmt::format("{}: {}", note, at.phase) : note,
                       at.free);
      },
      host_name());
}

/// Plans, shows or submits the tasks, or runs them here; whether the sweep goes on in this process.
bool start_tasks(const SweepOptions& options, api::Sweep& sweep, const api::SweepRequest& asked,
                 const api::Context& context) {
  std::vector<std::string> last;
  if (!options.gate.target.empty()) last = {"--gate", options.gate.target};
  if (options.gate.strict) last.emplace_back("--strict");
  if (!asked.figures.empty()) last.insert(last.end(), {"--figures", asked.figures});
  const api::ClusterPlan plan = api::plan_cluster(
      sweep, asked, options.cluster.request(std::move(last)), context, options.dry_run);
  if (sweep.existing == api::Existing::fresh) sweep.existing = api::Existing::resume;
  if (plan.tasks.empty()) {
    if (!options.quiet) say("all {} points are present", plan.points);
    return options.cluster.parallel && !options.dry_run;
  }
  return start(options.cluster, plan, options.dry_run, options.quiet);
}

int run_sweep(const SweepOptions& options) {
  options.cluster.require_used();
  api::SweepRequest asked = options.asked;
  asked.gate = options.gate.gate();
  api::Context context = program_context(options.quiet);
  api::Sweep sweep = api::plan_sweep(asked, context.folders);
  const experiments::SweepConfig& config = sweep.config;
  if (config.repeated > 0)
    say("{}: {}", sweep.path,
        config.repeated == 1
            ? "1 point repeats an earlier one and is left out"
            : fmt::format("{} points repeat earlier ones and are left out", config.repeated));
  if (!options.quiet) note_short_names_in(sweep.path);
  if (options.cluster.used()) {
    if (!start_tasks(options, sweep, asked, context)) return kFine;
  } else if (options.dry_run) {
    return dry_run(sweep, context);
  }
  double start = 0;
  context.on_checked = [&] {
    if (!options.quiet) say("loading {} on {}", config.net, config.data);
    start = seconds();
  };
  const experiments::SweepSummary summary = run_points(sweep, context, options.quiet);
  if (!options.quiet) {
    say("");
    say("{}: {} computed, {} already present, {:.1f} s",
        counted(static_cast<std::int64_t>(summary.points), "point"), summary.computed, summary.kept,
        seconds() - start);
  }
  if (sweep.shard.count > 1) {
    fmt::print("{}\n", options.quiet ? summary.rows_path : harmless(summary.rows_path));
    if (!options.quiet) say("after all shards: numemu report {}", sweep.out);
    return kFine;
  }
  const api::ReportPaths paths = api::default_paths(sweep.out, sweep.figures);
  const api::WrittenReport written = api::write_report(sweep.out, paths, context, true, sweep.gate);
  if (options.json) {
    for (const auto& row : written.rows) fmt::print("{}\n", to_json(row).dump());
  } else {
    fmt::print("{}", options.quiet ? gate_lines(written)
                                   : summary_table(written.rows, written.unfinished) + "\n");
    fmt::print("{}\n", options.quiet ? paths.html : harmless(paths.html));
  }
  return gate_code(written.rows, options.gate.strict, !written.unfinished.empty());
}

}  // namespace

void add_sweep(Program& program) {
  auto [command, options] = program.command<SweepOptions>("sweep", run_sweep);
  const std::vector<api::Option> asked = api::options_of(options.asked);
  add_options(command, asked, {"config", "out", "calibrate_on", "metrics", "shard"});
  Option resume = command.flag("--resume", options.resume, "Keep existing rows (the default)");
  Option fresh =
      command
          .flag("--fresh", options.asked.existing,
                "Delete existing rows (with --shard: this shard's) and compute the float32 "
                "baseline again, ignoring the cache",
                api::Existing::fresh)
          .excludes(resume);
  command
      .flag("--keep-old", options.asked.existing, "Keep rows of other numerics versions as well",
            api::Existing::keep_old)
      .excludes(fresh);
  add_options(command, asked, {"predictions", "figures"});
  add_gate(command, options.gate);
  command.flag(
      "--dry-run", options.dry_run,
      "List the points and the estimated time, or print the scripts of --slurm, then stop");
  command.flag("--json", options.json, "Print the rows as JSON instead of the table");
  command.flag("--quiet", options.quiet,
               "Print only the gate's verdict and the path of the report");
  add_cluster(command, options.cluster, false);
}

}  // namespace numemu::cli
