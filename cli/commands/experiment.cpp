// numemu experiment: runs a named experiment; prints rows, tables and verdicts.
#include "experiments/engine/experiment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/command.hpp"
#include "cli/memory_option.hpp"
#include "cli/progress.hpp"
#include "cli/report_files.hpp"
#include "cli/table.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_folder.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct ExperimentOptions {
  std::string name, size = "default", out;
  std::vector<std::string> settings;
  std::int64_t seed = 0;
  bool fresh = false, json = false, quiet = false, strict = false;
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
    fmt::print("{}", text_table({"experiment", "question"}, rows));
  }
  return kFine;
}

/// A folder may hold the results of one experiment.
void require_own_folder(const std::string& folder, const std::string& name, bool fresh) {
  const std::string path = folder + "/experiment.json";
  if (fresh || !std::filesystem::exists(path)) return;
  const Json found = parse_json(read_text(path), path);
  const std::string other = found.is_object() ? found.value("name", Json()).dump() : "?";
  if (other != Json(name).dump()) {
    throw Error(fmt::format("{}: results of experiment {}, not of \"{}\"; use --fresh or --out {}",
                            path, other, name, fresh_folder(folder)));
  }
}

/// Predicted, measured, interval of a finding; "-" where there is none.
std::vector<std::string> cells_of(const Json& finding) {
  if (finding.is_null()) return {"-", "-", "-"};
  const Json& ends = finding["ci95"];
  return {number_text(finding["predicted"], "{:.4g}"), number_text(finding["measured"], "{:.4g}"),
          ends[0].is_null() && ends[1].is_null() ? "-" : interval_text(ends, "{:.4g}")};
}

/// Tables, failed claims, sentences, and last, where a terminal shows it, the conclusion.
void print(const experiments::Conclusion& conclusion, const Json& json) {
  for (const experiments::ResultTable& table : conclusion.tables)
    fmt::print("{}\n{}\n", harmless(table.title), text_table(table.header, table.rows));
  std::vector<std::vector<std::string>> findings, claims;
  std::size_t checks = 0, passed = 0;
  for (std::size_t i = 0; i < conclusion.findings.size(); ++i) {
    const experiments::Finding& finding = conclusion.findings[i];
    const bool holds = finding.verdict == Verdict::holds;
    checks += finding.self_check;
    passed += finding.self_check && holds;
    if (holds) continue;
    findings.push_back(cells_of(json["findings"][i]));
    findings.back().insert(findings.back().begin(), to_string(finding.verdict));
    findings.back().push_back(finding.what);
  }
  if (!findings.empty()) {
    fmt::print("{}\n", text_table({"verdict", "predicted", "measured", "95 % interval",
                                   "finding that does not hold"},
                                  findings));
  }
  for (const std::string& sentence : conclusion.sentences) fmt::print("{}\n", harmless(sentence));
  if (checks > 0) fmt::print("Self-checks: {} of {} hold.\n", passed, checks);
  for (const Json& claim : json["claims"]) {
    const Json& verdict = claim["verdict"];
    claims.push_back(cells_of(claim["worst"]));
    claims.back().insert(
        claims.back().begin(),
        {verdict.is_null() ? std::string("not tested") : verdict.get<std::string>(),
         fmt::format("{}, {}, {}", claim["holds"].dump(), claim["undecided"].dump(),
                     claim["fails"].dump())});
    claims.back().push_back(claim["claim"].get<std::string>());
  }
  if (!claims.empty()) {
    fmt::print("\n{}\n", text_table({"verdict", "hold, undecided, fail", "predicted", "measured",
                                     "95 % interval", "claim (numbers: its worst finding)"},
                                    claims));
  }
}

int run_experiment(const ExperimentOptions& options) {
  if (options.name.empty()) return list(options);
  const experiments::Experiment& experiment = experiments::find_experiment(options.name);
  const experiments::Size size = experiments::parse_size(options.size);
  for (const std::string& setting : options.settings) require_utf8("--set", setting);
  experiments::ExperimentRun run{
      .settings = experiments::Settings(experiment.settings, size, options.settings),
      .seed = static_cast<std::uint64_t>(options.seed),
      .out = options.out.empty() ? fmt::format("out/{}-{}", experiment.name, options.size)
                                 : options.out,
      .existing = options.fresh ? experiments::Existing::fresh : experiments::Existing::resume,
      .folders = {data_folder(), cache_folder()},
      .hooks = {}};
  std::unique_ptr<Progress> progress;
  run.hooks.seconds = seconds;
  run.on_bench = [&,
                  bench = std::shared_ptr<Progress>()](const experiments::WorkState& at) mutable {
    if (!bench)
      bench = std::make_shared<Progress>(experiment.name, static_cast<std::int64_t>(at.total), "",
                                         options.quiet);
    bench->show(at.done, std::string(at.phase), at.free);
    if (at.done >= at.total) bench.reset();
  };
  run.hooks.on_point = [&](std::size_t done, std::size_t kept, std::size_t total,
                           const experiments::Point& point) {
    if (!progress) {
      progress = std::make_unique<Progress>(experiment.name, static_cast<std::int64_t>(total),
                                            "points", options.quiet);
    }
    progress->show(static_cast<std::int64_t>(done), point.where,
                   static_cast<std::int64_t>(std::min(done, kept)));
  };
  std::size_t trials = 0;  // total of the bar: an experiment may run several sets of trials
  run.hooks.on_trial = [&](std::size_t done, std::size_t kept, std::size_t total,
                           const std::string& label) {
    if (!progress || done == 0 || total != trials) {
      trials = total;
      progress = std::make_unique<Progress>(experiment.name, static_cast<std::int64_t>(total),
                                            "trials", options.quiet);
    }
    progress->show(static_cast<std::int64_t>(done), label,
                   static_cast<std::int64_t>(std::min(done, kept)));
  };
  run.say = [&](const std::string& what) {
    if (!options.quiet) say_line(what);
  };
  run.hooks.warn = [](const std::string& what) { say("numemu: {}", what); };
  require_writable_folder(run.out);
  if (std::filesystem::exists(run.out)) {
    require_replaceable(run.out + "/experiment.json");
    require_report_files(run.out, default_paths(run.out));
  }
  require_own_folder(run.out, experiment.name, options.fresh);
  const experiments::Conclusion conclusion = experiment.run(run);
  std::error_code error;  // an experiment without rows and trials made no folder
  std::filesystem::create_directories(run.out, error);
  if (error) throw Error(fmt::format("{}: cannot be created ({})", run.out, error.message()));
  const Json json = experiments::to_json(experiment, run, conclusion);
  write_atomically(run.out + "/experiment.json", {json.dump(2), "\n"});
  bool failed = false;
  for (const experiments::Finding& finding : conclusion.findings)
    failed = failed || finding.verdict == Verdict::fails;
  write_report(run.out, default_paths(run.out));
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    print(conclusion, json);
    fmt::print("{}\n", harmless(run.out));
  }
  return options.strict && failed ? kMismatch : kFine;
}

}  // namespace

void add_experiment(Program& program) {
  auto options = std::make_shared<ExperimentOptions>();
  Command& command = program.command("experiment", [options] { return run_experiment(*options); });
  command.option("name NAME", options->name, "Experiment");
  command.option("--set key=value", options->settings, "Change a setting (repeatable)");
  command
      .option("--size SIZE", options->size, "smoke (20 s), default (10 minutes) or full (longer)")
      .show_default();
  command.option("--seed", options->seed, "Seed of all random draws")
      .show_default()
      .whole(0, std::int64_t{1} << 53);
  command.option("--out DIR", options->out, "Folder for rows and report (default out/NAME-SIZE)");
  command.flag("--fresh", options->fresh,
               "Delete existing rows and compute the float32 baseline again, ignoring the cache");
  command.flag("--strict", options->strict,
               "Exit with 1 if a finding fails (default: 0, a failed finding is a result)");
  command.flag("--json", options->json, "Print the conclusion as JSON");
  command.flag("--quiet", options->quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
