// numemu report: rows of a sweep, shards merged, to HTML, CSV, SQLite and Markdown.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "api/studies.hpp"
#include "cli/command.hpp"
#include "cli/network_options.hpp"
#include "cli/report_files.hpp"
#include "cli/talk.hpp"
#include "experiments/report/columns.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {
namespace {

struct ReportOptions {
  std::string folder, html, csv, sqlite, markdown, figures;
  GateOption gate;
  bool predictions = true, quiet = false, json = false, cite = false, columns = false;
};

/// The page of all published systems from a folder of experiments' folders.
int report_systems(const ReportOptions& options) {
  const auto refuse = [](const char* option) {
    throw usage_error(std::string(option) + ": expected the folder of one sweep or experiment");
  };
  if (!options.csv.empty()) refuse("--csv");
  if (!options.sqlite.empty()) refuse("--sqlite");
  if (options.gate.gate()) refuse("--gate");
  if (options.cite) refuse("--cite");
  if (options.json) refuse("--json");
  const std::string html = options.html.empty() ? options.folder + "/systems.html" : options.html,
                    markdown = options.markdown.empty() ? options.folder + "/systems.md"
                                                        : options.markdown;
  const api::WrittenSystems written = api::write_systems(
      options.folder, html, markdown, options.figures, program_context(options.quiet));
  if (!options.quiet) fmt::print("{}\n", written.answer);
  fmt::print("{}\n", options.quiet ? html : harmless(html));
  return kFine;
}

/// --cite and --columns print, and write or judge nothing.
void refuse_beside(const ReportOptions& options, const char* printed) {
  for (const auto& [option, given] : {std::pair("--out", !options.html.empty()),
                                      {"--csv", !options.csv.empty()},
                                      {"--sqlite", !options.sqlite.empty()},
                                      {"--markdown", !options.markdown.empty()},
                                      {"--figures", !options.figures.empty()},
                                      {"--gate", options.gate.gate().has_value()},
                                      {"--no-predictions", !options.predictions},
                                      {"--json", options.json}})
    if (given) throw usage_error(fmt::format("{}: not allowed with {}", option, printed));
}

int run_report(const ReportOptions& options) {
  if (options.columns && options.cite) throw usage_error("--cite: not allowed with --columns");
  if (options.columns || options.cite)
    refuse_beside(options, options.cite ? "--cite" : "--columns");
  if (options.columns) {
    fmt::print("{}", experiments::columns_page());
    return kFine;
  }
  if (options.folder.empty()) throw usage_error("folder: expected DIR");
  if (!std::filesystem::is_directory(options.folder))
    throw file_error(options.folder + ": no such folder");
  if (api::holds_experiments(options.folder)) return report_systems(options);
  if (options.cite) {
    fmt::print("{}", api::cite(options.folder));
    return kFine;
  }
  const std::optional<experiments::Gate> gate = options.gate.gate();
  api::ReportPaths paths = api::default_paths(options.folder, options.figures);
  if (!options.html.empty()) paths.html = options.html;
  if (!options.csv.empty()) paths.csv = options.csv;
  if (!options.sqlite.empty()) paths.sqlite = options.sqlite;
  if (!options.markdown.empty()) paths.markdown = options.markdown;
  const api::WrittenReport report = api::write_report(
      options.folder, paths, program_context(options.quiet), options.predictions, gate);
  const std::vector<experiments::Row>& rows = report.rows;
  for (const auto& [option, given] : {std::pair("--gate", gate.has_value()),
                                      {"--csv", !options.csv.empty()},
                                      {"--sqlite", !options.sqlite.empty()}})
    if (given && rows.empty())
      throw usage_error(fmt::format("{}: expected rows for {}", options.folder, option));
  const int code = gate_code(rows, options.gate.strict, !report.unfinished.empty());
  if (options.json) {
    for (const auto& row : rows) fmt::print("{}\n", to_json(row).dump());
    return code;
  }
  if (options.quiet) fmt::print("{}", gate_lines(report));
  if (!options.quiet && !report.answer.empty()) fmt::print("{}\n\n", harmless(report.answer));
  if (!options.quiet && !rows.empty()) fmt::print("{}\n", summary_table(rows, report.unfinished));
  fmt::print("{}\n", options.quiet ? paths.html : harmless(paths.html));
  return code;
}

}  // namespace

void add_report(Program& program) {
  auto [command, options] = program.command<ReportOptions>("report", run_report);
  command.option("folder DIR", options.folder,
                 "Folder with rows.jsonl, rows.<i>.jsonl or experiment.json, or with folders of "
                 "experiments: the page of all published systems");
  command.option("-o,--out FILE", options.html, "The HTML file (default DIR/report.html)");
  command.option("--csv FILE", options.csv, "The CSV file (default DIR/report.csv)");
  command.option("--sqlite FILE", options.sqlite, "The SQLite file (default DIR/report.sqlite)");
  command.option("--markdown FILE", options.markdown, "The Markdown file (default DIR/report.md)");
  command.option("--figures DIR", options.figures,
                 "Folder for the figures as SVG, PDF and CSV and the tables as LaTeX");
  command.flag("--columns", options.columns,
               "Print what the columns of CSV and SQLite mean, and write nothing");
  command.flag("--cite", options.cite,
               "Print how to cite the run, with digests and BibTeX, and write nothing");
  command.flag("--no-predictions", options.predictions, "Omit the predictions", false);
  add_gate(command, options.gate);
  command.flag("--json", options.json, "Print the rows as JSON instead of the table");
  command.flag("--quiet", options.quiet,
               "Print only the gate's verdict and the path of the report");
}

}  // namespace numemu::cli
