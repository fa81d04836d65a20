// Writing the report of a sweep folder and printing its summary.
#include "cli/report_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/table.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/report/report.hpp"
#include "policies/recipe/json_reader.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string role_text(const Json& role) {
  if (!role.is_object() || !role.contains("format")) return "float32";
  return fmt::format("{} {} {} {}/{}", role["format"].get<std::string>(),
                     role["rounding"].get<std::string>(), role["overflow"].get<std::string>(),
                     role["scale"].get<std::string>(), role["granularity"].get<std::string>());
}

std::string number(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

}  // namespace

ReportPaths default_paths(const std::string& folder) {
  return {folder + "/report.html", folder + "/report.csv", folder + "/report.sqlite",
          folder + "/report.md"};
}

std::vector<Json> write_report(const std::string& folder, const ReportPaths& paths) {
  std::vector<Json> rows = experiments::merge_rows(folder);
  const std::string sweep_path = folder + "/sweep.json", tensors_path = folder + "/tensors.json";
  const bool has_sweep = std::filesystem::exists(sweep_path),
             has_tensors = std::filesystem::exists(tensors_path);
  const Json sweep = has_sweep ? policies::parse_json(policies::read_text(sweep_path), sweep_path)
                               : Json::object();
  const Json tensors =
      has_tensors ? policies::parse_json(policies::read_text(tensors_path), tensors_path) : Json();
  const experiments::ReportInput input{&sweep, &rows, has_tensors ? &tensors : nullptr};
  if (!paths.html.empty()) experiments::write_html(input, paths.html);
  if (!paths.csv.empty()) experiments::write_csv(input, paths.csv);
  if (!paths.sqlite.empty()) experiments::write_sqlite(input, paths.sqlite);
  if (!paths.markdown.empty()) experiments::write_markdown(input, paths.markdown);
  return rows;
}

std::string summary_table(const std::vector<Json>& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const Json& row : rows) {
    const Json& recipe = row["point"]["recipe"];
    const Json& metrics = row["metrics"];
    cells.push_back({role_text(recipe["roles"]["weight"]), role_text(recipe["roles"]["activation"]),
                     recipe["gemms"]["fprop"]["unit"].get<std::string>(),
                     number(row["bits"]["weight"], "{:.2f}"),
                     number(row["bits"]["activation"], "{:.2f}"),
                     fmt::format("{:.2f}", 100 * metrics["top1"].get<double>()),
                     fmt::format("[{:.2f}, {:.2f}]", 100 * metrics["ci95"][0].get<double>(),
                                 100 * metrics["ci95"][1].get<double>()),
                     number(metrics.value("sqnr_db", Json()), "{:.1f}"),
                     number(row["predicted"].value("sqnr_db", Json()), "{:.1f}")});
  }
  return text_table({"weights", "activations", "unit", "W bits", "A bits", "top-1 %", "95 %",
                     "SQNR dB", "predicted"},
                    cells);
}

}  // namespace numemu::cli
