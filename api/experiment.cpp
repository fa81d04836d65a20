#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "api/cluster/plan.hpp"
#include "api/studies.hpp"
#include "api/text/lists.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/experiment_file.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"

namespace numemu::api {
namespace {

/// A folder may hold the results of one experiment.
void require_own_folder(const std::string& folder, const std::string& name, Existing existing) {
  const std::string path = folder + "/experiment.json";
  if (existing == Existing::fresh || !std::filesystem::exists(path)) return;
  Json found;
  try {
    found = parse_json(read_text(path), path);
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}; without it the rest of the folder is kept: remove it, or use "
                    "--fresh or --out {}",
                    error.what(), fresh_folder(folder)));
  }
  const std::string other = found.is_object() ? found.value("name", Json()).dump() : "?";
  if (other != Json(name).dump()) {
    throw Error(fmt::format("{}: results of experiment {}, not of \"{}\"; use --fresh or --out {}",
                            path, other, name, fresh_folder(folder)));
  }
}

std::string folder_of(const ExperimentRequest& asked) {
  return asked.out.empty() ? fmt::format("out/{}-{}", asked.name, asked.size) : asked.out;
}

}  // namespace

ExperimentResult run_experiment(const ExperimentRequest& asked, const Context& context,
                                const experiments::SweepHooks& hooks) {
  const net::RunScope scope(context.run);
  const experiments::Experiment& experiment = experiments::find_experiment(asked.name);
  const experiments::Size size = experiments::parse_size(asked.size);
  for (const std::string& setting : asked.settings) {
    const std::size_t equals = setting.find('=');
    if (asked.given_by == experiments::GivenBy::set) {
      require_utf8("--set", setting);
    } else {
      require_utf8("--" + setting.substr(0, equals), setting.substr(equals + 1));
    }
  }
  experiments::ExperimentRun run{
      .settings = experiments::settings_of(experiment, size, asked.settings, asked.given_by),
      .seed = static_cast<std::uint64_t>(asked.seed),
      .out = folder_of(asked),
      .existing = asked.existing,
      .shard = experiments::parse_shard(asked.shard),
      .folders = context.folders,
      .hooks = hooks,
      .say = context.say,
      .on_bench = context.on_work};
  run.hooks.seconds = context.clock;
  run.hooks.warn = [&](const std::string& what) { context.warn("numemu: " + what); };
  require_writable_folder(run.out);
  const ReportPaths paths = default_paths(run.out, asked.figures);
  if (std::filesystem::exists(run.out)) require_replaceable(run.out + "/experiment.json");
  require_report_files(run.out, paths);
  require_own_folder(run.out, experiment.name, asked.existing);
  ExperimentResult result{.out = run.out, .conclusion = {}, .file = {}};
  try {
    result.conclusion = experiment.run(run);
  } catch (const experiments::OthersMissing&) {
  }
  result.concluded = run.shard.whole();
  if (!result.concluded) return result;
  make_folder(run.out);  // an experiment without rows and trials made none
  result.file = experiments::file_of(experiment, run, result.conclusion);
  write_atomically(run.out + "/experiment.json", {numemu::json_of(result.file).dump(2), "\n"});
  write_report(run.out, paths, context);
  return result;
}

namespace {

/// Whether the folder has the conclusion that the run would come to.
bool concluded(const experiments::Experiment& experiment, const ExperimentRequest& asked) {
  const std::string path = asked.out + "/experiment.json";
  if (asked.existing == Existing::fresh || !std::filesystem::exists(path)) return false;
  const experiments::ExperimentFile file =
      experiments::read_experiment(parse_json(read_text(path), path));
  const Json settings =
      experiments::settings_of(experiment, experiments::parse_size(asked.size), {}).values();
  return file.name == experiment.name && file.settings == settings &&
         file.version == kNumericsVersion && file.seed == static_cast<std::uint64_t>(asked.seed);
}

}  // namespace

AllExperiments run_all_experiments(const ExperimentRequest& asked,
                                   const std::function<void(const ExperimentRequest&)>& run) {
  if (!asked.settings.empty())
    throw usage_error("--set: expected none for all experiments, which share no settings");
  const bool whole = experiments::parse_shard(asked.shard).whole();
  AllExperiments result{.out = asked.out.empty() ? "out/all-" + asked.size : asked.out};
  experiments::parse_size(asked.size);
  make_folder(result.out);
  const std::string html = result.out + "/systems.html", markdown = result.out + "/systems.md";
  for (const std::string& page : {html, markdown}) require_replaceable(page);
  for (const experiments::Experiment* experiment : experiments::all_experiments()) {
    ExperimentRequest one = asked;
    one.name = experiment->name;
    one.out = result.out + "/" + experiment->name;
    if (!asked.figures.empty()) one.figures = asked.figures + "/" + experiment->name;
    try {
      if (concluded(*experiment, one)) continue;
      run(one);
    } catch (const Error& error) {
      result.errors.push_back(fmt::format("{}: {}", experiment->name, error.what()));
      continue;
    }
    if (whole) write_systems(result.out, html, markdown);
  }
  if (whole) result.answer = write_systems(result.out, html, markdown).answer;
  return result;
}

ClusterPlan plan_cluster(const ExperimentRequest& request, ClusterRequest asked) {
  const experiments::Experiment& experiment = experiments::find_experiment(request.name);
  const experiments::Size size = experiments::parse_size(request.size);
  experiments::settings_of(experiment, size, request.settings);
  if (request.shard != "0/1")
    throw usage_error("--shard: expected none beside --slurm and --parallel");
  if (request.existing == Existing::fresh)
    throw usage_error("--fresh: expected none beside --slurm and --parallel; take another --out");
  if (asked.tasks == 0) asked.tasks = asked.at_once;
  if (asked.tasks == 0)
    throw usage_error("--tasks: expected a number: the trials of an experiment have no estimate");
  std::vector<std::string> command = {"experiment", experiment.name, "--size",
                                      request.size, "--seed",        std::to_string(request.seed)};
  for (const std::string& setting : request.settings)
    command.insert(command.end(), {"--set", setting});
  return plan_tasks(experiment.name, folder_of(request), command, asked);
}

bool ExperimentResult::failed() const {
  return std::ranges::any_of(conclusion.findings, [](const experiments::Finding& finding) {
    return finding.verdict == Verdict::fails;
  });
}
namespace {

std::string joined_by_commas(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
  return out;
}

/// "resnet20" of a path, "lognormal-1.5" of a law.
std::string file_words(const std::string& subject) {
  const std::filesystem::path path(subject);
  std::string out = std::filesystem::exists(path) ? path.stem().string() : subject;
  for (char& c : out)
    if (c == ':' || c == '/' || c == '=') c = '-';
  return out;
}

}  // namespace

ExperimentRequest experiment_of(const SearchRequest& asked) {
  constexpr experiments::GivenBy kBy = experiments::GivenBy::option;
  ExperimentRequest out{.name = "search", .given_by = kBy};
  const auto given = [&](const std::string& key) { return asked.settings.contains(key); };
  const auto items = [&](const std::string& key) {
    return given(key) ? asked.settings.at(key) : std::vector<std::string>();
  };
  const auto one = [&](const std::string& key) {
    const std::vector<std::string> all = items(key);
    return all.empty() ? std::string() : all.front();
  };
  /// What is no number the setting refuses.
  const auto whole = [&](const std::string& key) {
    const std::string text = one(key);
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  };
  const std::vector<experiments::Setting>& known = experiments::find_experiment(out.name).settings;
  for (const auto& [key, values] : asked.settings)
    if (std::ranges::find(known, key, &experiments::Setting::key) == known.end())
      throw usage_error(fmt::format("search: unknown setting '{}'", key));
  if (given("net") == given("dist"))
    throw usage_error("search: expected --net NAME or --dist LAW, one of them");
  if (given("net") && !given("data")) throw usage_error("--data: expected a data set beside --net");
  if (given("tune") && !given("max_loss"))
    throw usage_error("--tune: expected --max-loss beside it");
  if (given("dist")) {
    if (given("max_loss"))
      throw usage_error("--max-loss: expected --net beside it, laws lose nothing");
    for (const char* of_networks :
         {"data", "units", "mac_cost", "refine", "measured", "random", "images"})
      if (given(of_networks))
        throw usage_error(fmt::format("{}: expected --net beside it",
                                      experiments::setting_name(of_networks, kBy)));
    for (const std::string& law : items("dist"))
      if (law.empty()) throw usage_error("--dist: expected a law or a file, found nothing");
  }
  if (given("measured") && given("refine") && whole("measured") > whole("refine"))
    throw usage_error(
        fmt::format("--measured: expected at most the {} of --refine, of which the best are "
                    "measured, found {}",
                    one("refine"), one("measured")));
  for (const experiments::Setting& setting : known) {
    const std::string value = joined_by_commas(
        setting.key == "formats" ? format_list(items("formats"), "--formats") : items(setting.key));
    if (!value.empty()) out.settings.push_back(fmt::format("{}={}", setting.key, value));
  }
  out.out = asked.out;
  if (out.out.empty())
    out.out = fmt::format("out/search-{}{}{}", file_words(one(given("net") ? "net" : "dist")),
                          given("bits") ? "-" + one("bits") : "",
                          given("max_loss") ? "-loss-" + one("max_loss") : "");
  out.figures = asked.figures;
  out.seed = asked.seed;
  out.existing = asked.existing;
  return out;
}

}  // namespace numemu::api
