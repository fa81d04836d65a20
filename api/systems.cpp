#include <algorithm>
#include <filesystem>

#include "api/report_figures.hpp"
#include "api/studies.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/paper/figures.hpp"
#include "experiments/systems/page.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace fs = std::filesystem;
namespace {

/// Folders in `folder` that hold a conclusion, by name.
std::vector<std::string> concluded_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;  // what cannot be looked at holds no conclusion
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::is_regular_file(entry.path() / "experiment.json", none))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// From the folder of `page` to the report of a run, or to its conclusion where it has no report.
std::string link_to(const fs::path& run, const std::string& page) {
  const fs::path to = run / (fs::exists(run / "report.html") ? "report.html" : "experiment.json");
  return to.lexically_relative(fs::absolute(page).lexically_normal().parent_path())
      .generic_string();
}

}  // namespace

bool holds_experiments(const std::string& folder) {
  return !fs::exists(folder + "/experiment.json") && !experiments::has_rows(folder) &&
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
      run.link = link_to(fs::absolute(folder).lexically_normal() / run.name, page);
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
