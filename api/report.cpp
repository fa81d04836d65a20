#include "experiments/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "api/studies.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/paper/figures.hpp"
#include "experiments/published/page.hpp"
#include "experiments/published/systems.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "policies/canonical_json.hpp"

namespace numemu::api {
namespace {

/// Tells when the rows are not all of the sweep's points, and returns it; "" where they are. A
/// sweep that this program cannot expand (another version's) hides no rows.
std::string tell_missing(const std::vector<experiments::Row>& rows, const std::string& sweep_path,
                         const Context& context) {
  std::set<std::string> present;  // rows of several numerics versions may be of one point
  for (const experiments::Row& row : rows)
    present.insert(policies::canonical_json(point_json(row)));
  try {
    const std::size_t points =
        experiments::parse_sweep(read_text(sweep_path), sweep_path, context.folders.data)
            .points.size();
    if (present.size() == points) return "";
    const std::string what =
        present.size() < points
            ? fmt::format("{} of {} points present", present.size(), points)
            : fmt::format("{} points, but rows of {}: the folder has rows of another sweep", points,
                          present.size());
    context.warn(fmt::format("{}: {}", sweep_path, what));
    return what;
  } catch (const Error& error) {
    const std::string what = "not known whether all points are present";
    context.warn(fmt::format("{}; {}", error.what(), what));
    return what;
  }
}

}  // namespace

ReportPaths default_paths(const std::string& folder, const std::string& figures) {
  return {folder + "/report.html", folder + "/report.csv", folder + "/report.sqlite",
          folder + "/report.md", figures};
}

void require_report_files(const std::string& folder, const ReportPaths& paths) {
  if (!paths.figures.empty()) {
    require_writable_folder(paths.figures);
    experiments::require_drawing(experiments::embedded_assets());
  }
  if (!std::filesystem::exists(folder)) return;
  const std::vector<NamedPath> outputs = {{"--out", paths.html, false},
                                          {"--csv", paths.csv, false},
                                          {"--sqlite", paths.sqlite, false},
                                          {"the Markdown report", paths.markdown, false}};
  for (const NamedPath& output : outputs) require_replaceable(output.path);
  std::vector<NamedPath> read;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") || name.ends_with(".jsonl"))
      read.push_back({"the folder's " + name, entry.path().string(), false});
  }
  require_distinct_paths(outputs, read);
  const std::string losses = experiments::losses_folder(folder);
  for (const NamedPath& output : outputs) {
    const std::filesystem::path parent = std::filesystem::path(output.path).parent_path();
    std::error_code none;
    if (!output.path.empty() &&
        std::filesystem::equivalent(parent.empty() ? "." : parent, losses, none))
      throw Error(fmt::format("{}: {}: expected another folder than that of the rows' losses",
                              output.option, output.path));
  }
}

namespace {

/// The files of a folder that reports are made from; what is not there is null.
struct StudyFiles {
  std::vector<experiments::Row> rows;
  Json sweep, tensors, experiment;
  bool has_sweep = false;

  experiments::ReportInput input(const std::string& folder) const {
    return {.sweep = &sweep,
            .rows = &rows,
            .tensors = tensors.is_null() ? nullptr : &tensors,
            .experiment = experiment.is_null() ? nullptr : &experiment,
            .folder = folder,
            .program = {NUMEMU_VERSION}};
  }
};

StudyFiles read_study(const std::string& folder) {
  const auto read = [&](const char* name) {
    const std::string path = folder + "/" + name;
    return std::filesystem::exists(path) ? parse_json(read_text(path), path) : Json();
  };
  StudyFiles study;
  study.sweep = read("sweep.json");
  study.has_sweep = !study.sweep.is_null();
  if (!study.has_sweep) study.sweep = Json::object();
  study.tensors = read("tensors.json");
  study.experiment = read("experiment.json");
  // An experiment may run no points; then it has only a conclusion.
  if (study.experiment.is_null() || experiments::has_rows(folder))
    study.rows = experiments::merge_rows(folder);
  return study;
}

void tell_figures(const experiments::WrittenFigures& written, const std::string& folder,
                  const Context& context) {
  context.say(fmt::format("{}: {} figures, {} tables", folder, written.figures, written.tables));
  if (!written.pdf) context.warn("no PDF: rsvg-convert is not installed (Debian: librsvg2-bin)");
}

}  // namespace

std::string cite(const std::string& folder) {
  const StudyFiles study = read_study(folder);
  const experiments::ReportInput input = study.input(folder);
  const experiments::Citation citation =
      experiments::citation_of(study.rows, input.sweep, input.experiment, input.program);
  return experiments::citation_text(citation) + "\n" + experiments::bibtex(citation);
}

WrittenReport write_report(const std::string& folder, const ReportPaths& paths,
                           const Context& context, bool predictions,
                           const std::optional<Gate>& gate) {
  require_report_files(folder, paths);
  StudyFiles study = read_study(folder);
  std::vector<experiments::Row>& rows = study.rows;
  if (!predictions) rows = experiments::without_predictions(std::move(rows));
  if (gate) {
    for (experiments::Row& row : rows) experiments::judge_gate(*gate, row);
  }
  experiments::ReportInput input = study.input(folder);
  const std::string unfinished = input.unfinished =
      study.has_sweep ? tell_missing(rows, folder + "/sweep.json", context) : "";
  if (!paths.html.empty()) experiments::write_html(input, paths.html);
  if (!paths.csv.empty() && !rows.empty()) experiments::write_csv(input, paths.csv);
  if (!paths.sqlite.empty() && !rows.empty()) experiments::write_sqlite(input, paths.sqlite);
  if (!paths.markdown.empty()) experiments::write_markdown(input, paths.markdown);
  if (!paths.figures.empty()) {
    tell_figures(experiments::write_paper(input, paths.figures), paths.figures, context);
  }
  std::string answer;
  if (study.experiment.is_object())
    answer = experiments::answer_of(experiments::read_experiment(study.experiment));
  return {std::move(rows), unfinished, std::move(answer)};
}
namespace {

/// Folders in `folder` that hold a conclusion, by name.
std::vector<std::string> concluded_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;  // what cannot be looked at holds no conclusion
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::is_regular_file(entry.path() / "experiment.json", none))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// From the folder of `page` to the report of a run, or to its conclusion where it has no report.
std::string link_to(const std::filesystem::path& run, const std::string& page) {
  const std::filesystem::path to =
      run / (std::filesystem::exists(run / "report.html") ? "report.html" : "experiment.json");
  return to.lexically_relative(std::filesystem::absolute(page).lexically_normal().parent_path())
      .generic_string();
}

}  // namespace

bool holds_experiments(const std::string& folder) {
  return !std::filesystem::exists(folder + "/experiment.json") && !experiments::has_rows(folder) &&
         !concluded_in(folder).empty();
}

WrittenSystems write_systems(const std::string& folder, const std::string& html,
                             const std::string& markdown, const std::string& figures,
                             const Context& context) {
  if (!figures.empty()) {
    require_writable_folder(figures);
    experiments::require_drawing(experiments::embedded_assets());
  }
  for (const std::string& path : {html, markdown})
    if (!path.empty()) require_replaceable(path);
  require_distinct_paths({{"--out", html, false}, {"--markdown", markdown, false}}, {});
  std::vector<experiments::ConcludedRun> runs;
  for (const std::string& name : concluded_in(folder)) {
    const std::string path = folder + "/" + name + "/experiment.json";
    runs.push_back({name, "", experiments::read_experiment(parse_json(read_text(path), path))});
  }
  const auto linked = [&](const std::string& page) {
    for (experiments::ConcludedRun& run : runs)
      run.link = link_to(std::filesystem::absolute(folder).lexically_normal() / run.name, page);
  };
  if (!markdown.empty()) {
    linked(markdown);
    write_atomically(markdown, {experiments::systems_markdown(runs)});
  }
  if (!html.empty()) {
    linked(html);
    write_atomically(html, {experiments::systems_html(runs, experiments::embedded_assets())});
  }
  if (!figures.empty())
    tell_figures(
        experiments::write_paper(
            experiments::systems_paper(runs, experiments::embedded_assets()),
            {{"systems", experiments::latex_table(experiments::systems_table(runs))}}, figures),
        figures, context);
  return {experiments::answer(experiments::tally(runs)), runs.size()};
}

}  // namespace numemu::api
