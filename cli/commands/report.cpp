// numemu report: rows of a sweep, shards merged, to HTML, CSV, SQLite and Markdown.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/report_files.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

struct Options {
  std::string folder, html, csv, sqlite;
  bool quiet = false, json = false;
};

int run(const Options& options) {
  if (!std::filesystem::is_directory(options.folder))
    throw Error(options.folder + ": there is no such folder");
  ReportPaths paths = default_paths(options.folder);
  if (!options.html.empty()) paths.html = options.html;
  if (!options.csv.empty()) paths.csv = options.csv;
  if (!options.sqlite.empty()) paths.sqlite = options.sqlite;
  const auto rows = write_report(options.folder, paths);
  if (options.json) {
    for (const auto& row : rows) fmt::print("{}\n", row.dump());
    return kFine;
  }
  if (!options.quiet && !rows.empty()) fmt::print("{}\n", summary_table(rows));
  fmt::print("{}\n", options.quiet ? paths.html : harmless(paths.html));
  return kFine;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("report", "Write the report of a sweep folder (shards are merged)");
  auto options = std::make_shared<Options>();
  command
      ->add_option("folder", options->folder,
                   "Folder with rows.jsonl, rows.<i>.jsonl or experiment.json")
      ->required()
      ->type_name("DIR");
  command->add_option("-o,--out", options->html, "The HTML file (default DIR/report.html)")
      ->type_name("FILE");
  command->add_option("--csv", options->csv, "The CSV file (default DIR/report.csv)")
      ->type_name("FILE");
  command->add_option("--sqlite", options->sqlite, "The SQLite file (default DIR/report.sqlite)")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print the rows instead of the table");
  command->add_flag("--quiet", options->quiet, "Print only the path of the report");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace numemu::cli
