// numemu sweep: a grid of recipes over one network, resumed where it stopped, ending in a report.
#include "experiments/engine/sweep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/gate_option.hpp"
#include "cli/memory_option.hpp"
#include "cli/metric_option.hpp"
#include "cli/progress.hpp"
#include "cli/report_files.hpp"
#include "cli/talk.hpp"
#include "experiments/engine/estimate.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/report/record.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_folder.hpp"
#include "policies/recipe/silent_notes.hpp"

namespace numemu::cli {
namespace {

struct SweepOptions {
  std::string config, out, calibrate_on, shard = "0/1";
  GateOption gate;
  std::vector<std::string> metrics;
  bool resume = false, fresh = false, keep_old = false, no_predictions = false, dry_run = false,
       quiet = false, json = false;
};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// The names that the report gives the points; no two are alike.
std::vector<std::string> point_names(const experiments::SweepConfig& config) {
  std::vector<Json> rows;
  for (const experiments::Point& point : config.points)
    rows.push_back({{"point", point.json}, {"recipe_name", point.recipe_name}});
  std::vector<std::string> names;
  for (const experiments::Record& record : experiments::read_records(rows))
    names.push_back(record.name);
  return names;
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

int dry_run(const experiments::SweepConfig& config, const experiments::Folders& folders,
            const std::string& out, const experiments::Shard& shard,
            experiments::Existing existing) {
  const std::vector<std::string> labels = point_names(config);
  for (std::size_t i = shard.index; i < labels.size(); i += shard.count)
    fmt::print("{:4}  {}\n", i, harmless(labels[i]));
  const experiments::Estimate estimate =
      experiments::estimate_sweep(config, folders, out, shard, existing, seconds);
  const auto rounded = static_cast<std::int64_t>(estimate.seconds + 0.5);
  fmt::print("{}, {}{} on this machine\n",
             counted(static_cast<std::int64_t>(estimate.points), "point"),
             estimate.kept > 0 ? fmt::format("{} of them already present, ", estimate.kept) : "",
             rounded == 0 ? "less than a second" : "about " + counted(rounded, "second"));
  return kFine;
}

experiments::Workbench make_bench(net::Dataset dataset, experiments::TrainedNet trained,
                                  const experiments::SweepConfig& config, const std::string& cache,
                                  const SweepOptions& options) {
  std::unique_ptr<Progress> progress;  // until the first point
  return {std::move(dataset),
          std::move(trained),
          config.eval_images,
          {cache, options.fresh,
           [&](const experiments::WorkState& at) {
             if (!progress)
               progress = std::make_unique<Progress>("sweep", static_cast<std::int64_t>(at.total),
                                                     "", options.quiet);
             progress->show(at.done, std::string(at.phase), at.free);
           },
           config.metrics}};
}

int run_sweep(const SweepOptions& options) {
  const std::optional<experiments::Gate> gate = options.gate.gate();
  const experiments::Folders folders{data_folder(), cache_folder()};
  const std::string path =
      options.config.empty() ? folders.data + "/sweeps/lenet-glyphs.json" : options.config;
  experiments::SweepConfig config = experiments::parse_sweep(read_text(path), path, folders.data);
  if (!options.metrics.empty()) experiments::set_metrics(config, options.metrics);
  experiments::set_calibration(config, options.calibrate_on);
  if (options.no_predictions) experiments::turn_predictions_off(config);
  if (config.points.empty()) throw Error(path + ": expected at least one point");
  const experiments::Shard shard = experiments::parse_shard(options.shard);
  const std::string out =
      options.out.empty() ? "out/" + std::filesystem::path(path).stem().string() : options.out;
  if (config.repeated > 0)
    say("{}: {}", path,
        config.repeated == 1
            ? "1 point repeats an earlier one and is left out"
            : fmt::format("{} points repeat earlier ones and are left out", config.repeated));
  if (!options.quiet) note_short_names_in(path);
  const auto existing = options.fresh      ? experiments::Existing::fresh
                        : options.keep_old ? experiments::Existing::keep_old
                                           : experiments::Existing::resume;
  if (options.dry_run) return dry_run(config, folders, out, shard, existing);

  if (gate && shard.count > 1)
    throw Error("--gate: expected beside it no --shard; after all shards: numemu report " + out);
  const ReportPaths paths = default_paths(out);
  require_writable_folder(out);
  if (std::filesystem::exists(out)) require_report_files(out, paths);
  if (!options.quiet) say("loading {} on {}", config.net, config.data);
  const double start = seconds();
  auto [dataset, trained] = experiments::load_sweep(config, folders);
  if (gate)
    experiments::require_float32(*gate, policies::own_quantizers(trained.graph, trained.path));
  experiments::RowStore rows =
      experiments::open_rows(config, dataset, trained, out, shard, existing);
  experiments::Workbench bench =
      make_bench(std::move(dataset), std::move(trained), config, folders.cache, options);

  // Points cost as much as their samples: a short one is not taken for a long one.
  const std::vector<const experiments::Point*> points = experiments::shard_points(config, shard);
  std::vector<double> before = {0};  // cost of the points before each, and of all
  for (const experiments::Point* point : points)
    before.push_back(before.back() + experiments::cost_of(*point, bench));
  Progress progress("sweep", static_cast<std::int64_t>(before.back()), "", options.quiet);
  const std::vector<std::string> labels = short_names(point_names(config));
  std::size_t passed = 0;
  double there = 0;  // cost of the points that were there
  const auto note = [&](std::size_t i) {
    return fmt::format("point {} of {}: {}", i + 1, points.size(),
                       labels[shard.index + i * shard.count]);
  };
  const bool terminal = ::isatty(STDERR_FILENO) == 1;  // else one line for each point
  experiments::SweepHooks hooks;
  hooks.on_work = [&](const experiments::WorkState& at) {
    const double share = (before[passed + 1] - before[passed]) * at.done / at.total;
    progress.show(before[passed] + share,
                  terminal ? fmt::format("{}: {}", note(passed), at.phase) : note(passed), there);
  };
  hooks.seconds = seconds;
  hooks.host = host_name();
  hooks.warn = [](const std::string& what) { say("numemu: {}", what); };
  hooks.on_point = [&, was = std::size_t{0}](std::size_t done, std::size_t kept, std::size_t,
                                             const experiments::Point&) mutable {
    if (kept > was) there += before[done] - before[done - 1];
    was = kept;
    passed = done;
    progress.show(before[done], note(done - 1), there);
  };
  const experiments::SweepSummary summary =
      experiments::run_sweep(config, bench, rows, out, shard, hooks);
  if (!options.quiet) {
    say("");
    say("{}: {} computed, {} already present, {:.1f} s",
        counted(static_cast<std::int64_t>(summary.points), "point"), summary.computed, summary.kept,
        seconds() - start);
  }
  if (shard.count > 1) {
    fmt::print("{}\n", options.quiet ? summary.rows_path : harmless(summary.rows_path));
    if (!options.quiet) say("after all shards: numemu report {}", out);
    return kFine;
  }
  const WrittenReport written = write_report(out, paths, true, gate);
  if (options.json) {
    for (const auto& row : written.rows) fmt::print("{}\n", row.dump());
  } else {
    fmt::print("{}", options.quiet ? gate_lines(written)
                                   : summary_table(written.rows, written.unfinished) + "\n");
    fmt::print("{}\n", options.quiet ? paths.html : harmless(paths.html));
  }
  return gate_code(written.rows, options.gate.strict, !written.unfinished.empty());
}

}  // namespace

void add_sweep(Program& program) {
  auto options = std::make_shared<SweepOptions>();
  Command& command = program.command("sweep", [options] { return run_sweep(*options); });
  command.option("config CONFIG.json", options->config, "Sweep file");
  command.option("--out DIR", options->out,
                 "Folder for rows and report (default out/<name of the sweep>)");
  command.option("--calibrate-on SET", options->calibrate_on,
                 "Calibrate on the samples of another data set");
  command.option("--metric NAME...", options->metrics, metric_help());
  command.option("--shard i/n", options->shard, "Run only the points i, i+n, i+2n, ...");
  Option resume = command.flag("--resume", options->resume, "Keep existing rows (the default)");
  Option fresh =
      command
          .flag("--fresh", options->fresh,
                "Delete existing rows (with --shard: this shard's) and compute the float32 "
                "baseline again, ignoring the cache")
          .excludes(resume);
  command.flag("--keep-old", options->keep_old, "Keep rows of other numerics versions as well")
      .excludes(fresh);
  command.flag("--no-predictions", options->no_predictions, "Measure only");
  add_gate(command, options->gate);
  command.flag("--dry-run", options->dry_run, "List the points and the estimated time, then stop");
  command.flag("--json", options->json, "Print the rows as JSON instead of the table");
  command.flag("--quiet", options->quiet,
               "Print only the gate's verdict and the path of the report");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
