#include "experiments/report/report.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "api/studies.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/report/record.hpp"
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

ReportPaths default_paths(const std::string& folder) {
  return {folder + "/report.html", folder + "/report.csv", folder + "/report.sqlite",
          folder + "/report.md"};
}

void require_report_files(const std::string& folder, const ReportPaths& paths) {
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

WrittenReport write_report(const std::string& folder, const ReportPaths& paths,
                           const Context& context, bool predictions,
                           const std::optional<Gate>& gate) {
  require_report_files(folder, paths);
  const std::string sweep_path = folder + "/sweep.json", tensors_path = folder + "/tensors.json",
                    experiment_path = folder + "/experiment.json";
  const bool has_sweep = std::filesystem::exists(sweep_path),
             has_tensors = std::filesystem::exists(tensors_path),
             has_experiment = std::filesystem::exists(experiment_path);
  // An experiment may run no points; then it has only a conclusion.
  std::vector<experiments::Row> rows;
  if (!has_experiment || experiments::has_rows(folder)) rows = experiments::merge_rows(folder);
  if (!predictions) rows = experiments::without_predictions(std::move(rows));
  if (gate) {
    for (experiments::Row& row : rows) experiments::judge_gate(*gate, row);
  }
  const Json sweep = has_sweep ? parse_json(read_text(sweep_path), sweep_path) : Json::object();
  const Json tensors = has_tensors ? parse_json(read_text(tensors_path), tensors_path) : Json();
  const Json experiment =
      has_experiment ? parse_json(read_text(experiment_path), experiment_path) : Json();
  const std::string unfinished = has_sweep ? tell_missing(rows, sweep_path, context) : "";
  const experiments::ReportInput input{
      &sweep,     &rows, has_tensors ? &tensors : nullptr, has_experiment ? &experiment : nullptr,
      unfinished, folder};
  if (!paths.html.empty()) experiments::write_html(input, paths.html);
  if (!paths.csv.empty() && !rows.empty()) experiments::write_csv(input, paths.csv);
  if (!paths.sqlite.empty() && !rows.empty()) experiments::write_sqlite(input, paths.sqlite);
  if (!paths.markdown.empty()) experiments::write_markdown(input, paths.markdown);
  return {std::move(rows), unfinished};
}

}  // namespace numemu::api
