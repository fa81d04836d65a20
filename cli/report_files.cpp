// Writing the report of a sweep folder and printing its summary.
#include "cli/report_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/table.hpp"
#include "cli/talk.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/report/record.hpp"
#include "experiments/report/report.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Says when the rows are not all of the sweep's points. A sweep that this program cannot expand
/// (another version's) hides no rows.
void tell_missing(const std::vector<Json>& rows, const std::string& sweep_path) {
  std::set<std::string> present;  // rows of several numerics versions may be of one point
  for (const Json& row : rows) present.insert(policies::canonical_json(row["point"]));
  try {
    const std::size_t points =
        experiments::parse_sweep(read_text(sweep_path), sweep_path).points.size();
    if (present.size() < points)
      say("{}: {} of {} points present", sweep_path, present.size(), points);
    if (present.size() > points)
      say("{}: {} points, but rows of {}: another sweep's are among them", sweep_path, points,
          present.size());
  } catch (const Error& error) {
    say("{}; not known whether all points are present", error.what());
  }
}

}  // namespace

std::string role_text(const Json& role) {
  if (!role.is_object()) return "float32";
  const Json mask = role.value("mask", Json());
  const std::string masked = mask.is_string() ? " " + mask.get<std::string>() : "";
  if (role["format"].is_null()) return "float32" + masked;
  return fmt::format("{} {} {} {}/{}{}", role["format"].get<std::string>(),
                     role["rounding"].get<std::string>(), role["overflow"].get<std::string>(),
                     role["scale"].get<std::string>(), role["granularity"].get<std::string>(),
                     masked);
}

std::string unit_text(const Json& unit) {
  return unit.is_string() ? unit.get<std::string>() : unit.value("name", "described");
}

std::string number_text(const Json& value, const char* format, double factor) {
  return value.is_number() ? fmt::format(fmt::runtime(format), factor * value.get<double>()) : "-";
}

std::string interval_text(const Json& pair, const char* format, double factor) {
  if (!pair.is_array() || pair.size() != 2) return "-";
  return fmt::format("[{}, {}]", number_text(pair[0], format, factor),
                     number_text(pair[1], format, factor));
}

ReportPaths default_paths(const std::string& folder) {
  return {folder + "/report.html", folder + "/report.csv", folder + "/report.sqlite",
          folder + "/report.md"};
}

void require_report_files(const ReportPaths& paths) {
  for (const std::string* path : {&paths.html, &paths.csv, &paths.sqlite, &paths.markdown})
    require_replaceable(*path);
}

std::vector<Json> write_report(const std::string& folder, const ReportPaths& paths) {
  require_report_files(paths);
  const std::string sweep_path = folder + "/sweep.json", tensors_path = folder + "/tensors.json",
                    experiment_path = folder + "/experiment.json";
  const bool has_sweep = std::filesystem::exists(sweep_path),
             has_tensors = std::filesystem::exists(tensors_path),
             has_experiment = std::filesystem::exists(experiment_path);
  // An experiment may run no points; then its answer is all there is.
  std::vector<Json> rows;
  if (!has_experiment || experiments::has_rows(folder)) rows = experiments::merge_rows(folder);
  const Json sweep = has_sweep ? parse_json(read_text(sweep_path), sweep_path) : Json::object();
  const Json tensors = has_tensors ? parse_json(read_text(tensors_path), tensors_path) : Json();
  const Json experiment =
      has_experiment ? parse_json(read_text(experiment_path), experiment_path) : Json();
  if (has_sweep) tell_missing(rows, sweep_path);
  const experiments::ReportInput input{&sweep, &rows, has_tensors ? &tensors : nullptr,
                                       has_experiment ? &experiment : nullptr};
  if (!paths.html.empty()) experiments::write_html(input, paths.html);
  if (!paths.csv.empty() && !rows.empty()) experiments::write_csv(input, paths.csv);
  if (!paths.sqlite.empty() && !rows.empty()) experiments::write_sqlite(input, paths.sqlite);
  if (!paths.markdown.empty()) experiments::write_markdown(input, paths.markdown);
  return rows;
}

std::string summary_table(const std::vector<Json>& rows) {
  const bool texts = std::any_of(rows.begin(), rows.end(), [](const Json& row) {
    return row["metrics"].contains("bits_per_character");
  });
  const bool layers = std::any_of(rows.begin(), rows.end(), [](const Json& row) {
    return !row["point"]["recipe"].value("layers", Json::array()).empty();
  });
  std::vector<std::string> header = {"weights", "activations", "unit", "W bits", "A bits"};
  if (layers) header.insert(header.begin() + 2, "layers");
  if (texts) header.insert(header.end(), {"bits/char", "perplexity"});
  header.insert(header.end(), {"top-1 %", "95 %", "SQNR dB", "predicted"});
  std::vector<std::vector<std::string>> cells;
  const std::vector<experiments::Record> records = experiments::read_records(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json &row = rows[i], &recipe = row["point"]["recipe"], &metrics = row["metrics"];
    std::vector<std::string> line = {role_text(recipe["roles"]["weight"]),
                                     role_text(recipe["roles"]["activation"])};
    if (layers) line.push_back(records[i].other);
    line.insert(line.end(), {unit_text(recipe["gemms"]["fprop"]["unit"]),
                             number_text(row["bits"]["weight"], "{:.2f}"),
                             number_text(row["bits"]["activation"], "{:.2f}")});
    if (texts) {
      line.insert(line.end(), {number_text(metrics.value("bits_per_character", Json()), "{:.4f}"),
                               number_text(metrics.value("perplexity", Json()), "{:.3f}")});
    }
    line.insert(line.end(), {number_text(metrics["top1"], "{:.2f}", 100),
                             interval_text(metrics["ci95"], "{:.2f}", 100),
                             number_text(metrics.value("sqnr_db", Json()), "{:.1f}"),
                             number_text(row["predicted"].value("sqnr_db", Json()), "{:.1f}")});
    cells.push_back(std::move(line));
  }
  return text_table(header, cells);
}

}  // namespace numemu::cli
