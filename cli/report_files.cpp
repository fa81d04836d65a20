#include "cli/report_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/command.hpp"
#include "cli/sweep_table.hpp"
#include "cli/talk.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/gate_text.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/not_finite_text.hpp"
#include "experiments/report/percent.hpp"
#include "experiments/report/predictions_off.hpp"
#include "experiments/report/record.hpp"
#include "experiments/report/report.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::cli {
namespace {

using experiments::Record;

/// Says when the rows are not all of the sweep's points, and returns it; "" where they are. A sweep
/// that this program cannot expand (another version's) hides no rows.
std::string tell_missing(const std::vector<Json>& rows, const std::string& sweep_path) {
  std::set<std::string> present;  // rows of several numerics versions may be of one point
  for (const Json& row : rows) present.insert(policies::canonical_json(row["point"]));
  try {
    const std::size_t points =
        experiments::parse_sweep(read_text(sweep_path), sweep_path, data_folder()).points.size();
    if (present.size() == points) return "";
    const std::string what =
        present.size() < points
            ? fmt::format("{} of {} points present", present.size(), points)
            : fmt::format("{} points, but rows of {}: the folder has rows of another sweep", points,
                          present.size());
    say("{}: {}", sweep_path, what);
    return what;
  } catch (const Error& error) {
    const std::string what = "not known whether all points are present";
    say("{}; {}", error.what(), what);
    return what;
  }
}

/// Explains the cells of the table: why no SQNR is predicted, what predictions leave out,
/// where numbers stop being finite, and notes.
std::string footnotes(const std::vector<Record>& records, const std::string& unfinished) {
  std::string out;
  const auto say = [&out](const std::string& line) { out += harmless(line) + "\n"; };
  if (std::any_of(records.begin(), records.end(), [](const Record& r) { return r.unit_ignored(); }))
    say(kUnitLeftOut);
  std::vector<experiments::SharedNote> left_out;
  for (const Record& r : records) {
    if (r.left_out.empty()) continue;
    const auto found = std::find_if(left_out.begin(), left_out.end(),
                                    [&](const auto& known) { return known.text == r.left_out; });
    if (found == left_out.end()) {
      left_out.push_back({r.left_out, {r.name}});
    } else {
      found->names.push_back(r.name);
    }
  }
  // A single row needs no name.
  const auto of = [&](const std::vector<std::string>& names) {
    return records.size() < 2 ? "" : " (" + experiments::listed_names(names) + ")";
  };
  for (const auto& reason : left_out) say("no prediction: " + reason.text + of(reason.names));
  for (const Record& r : records) {
    if (!r.not_finite) continue;
    say("not finite" + (records.size() < 2 ? "" : ": " + r.name));
    for (const std::string& sentence : experiments::not_finite_sentences(*r.row))
      say("  " + sentence);
  }
  for (const std::string& sentence : experiments::gate_sentences(records, unfinished))
    say(sentence);
  for (const auto& kind : experiments::by_kind(experiments::shared_notes(records))) {
    const std::size_t shown = records.size() > 1 ? 1 : kind.size();
    for (std::size_t i = 0; i < shown; ++i) say("note: " + kind[i].text + of(kind[i].names));
    if (shown < kind.size())
      say(fmt::format("      and {} more of this kind, in the report", kind.size() - shown));
  }
  return out;
}

}  // namespace

std::string number_text(const Json& value, const char* format, double factor) {
  if (!value.is_number()) return "-";
  return factor == 100 ? experiments::percent_text(value.get<double>(), format)
                       : fmt::format(fmt::runtime(format), factor * value.get<double>());
}

std::string interval_text(const Json& pair, const char* format, double factor) {
  if (!pair.is_array() || pair.size() != 2 || (pair[0].is_null() && pair[1].is_null())) return "-";
  return fmt::format("[{}, {}]", number_text(pair[0], format, factor),
                     number_text(pair[1], format, factor));
}

std::string none_differs(const Json& score, std::int64_t samples) {
  const Json none = Json::array(), zeros = {0, 0};
  const Json& exact = score.contains("exact") ? score["exact"] : none;
  // The interval of a metric without an exact one is that of resamples, which have no difference.
  // AUC depends on the order of the samples alone: their logits may differ where it does not.
  const bool alike = score["name"] != "auc" && samples > 0 && score.contains("resampled") &&
                     score["difference"] == 0 &&
                     (std::ranges::find(exact, "difference_ci95") != exact.end() ||
                      score["difference_ci95"] == zeros);
  if (!alike) return "";
  const std::string drawn = score["resampled"].get<std::string>();
  const bool windows = drawn != "samples";
  const std::int64_t length = windows ? experiments::block_length(samples) : 1;
  const double share = stats::share_of_none((samples + length - 1) / length);
  return fmt::format(
      "no {}'s figure differs from float32; at 95 % at most {} % of {} do (Clopper-Pearson)",
      windows ? "window" : "sample", experiments::percent_text(share, "{:.1f}"), drawn);
}

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

WrittenReport write_report(const std::string& folder, const ReportPaths& paths, bool predictions,
                           const std::optional<experiments::Gate>& gate) {
  require_report_files(folder, paths);
  const std::string sweep_path = folder + "/sweep.json", tensors_path = folder + "/tensors.json",
                    experiment_path = folder + "/experiment.json";
  const bool has_sweep = std::filesystem::exists(sweep_path),
             has_tensors = std::filesystem::exists(tensors_path),
             has_experiment = std::filesystem::exists(experiment_path);
  // An experiment may run no points; then it has only a conclusion.
  std::vector<Json> rows;
  if (!has_experiment || experiments::has_rows(folder)) rows = experiments::merge_rows(folder);
  if (!predictions) rows = experiments::without_predictions(std::move(rows));
  if (gate) {
    for (Json& row : rows) experiments::judge_gate(*gate, row);
  }
  const Json sweep = has_sweep ? parse_json(read_text(sweep_path), sweep_path) : Json::object();
  const Json tensors = has_tensors ? parse_json(read_text(tensors_path), tensors_path) : Json();
  const Json experiment =
      has_experiment ? parse_json(read_text(experiment_path), experiment_path) : Json();
  const std::string unfinished = has_sweep ? tell_missing(rows, sweep_path) : "";
  const experiments::ReportInput input{
      &sweep,     &rows, has_tensors ? &tensors : nullptr, has_experiment ? &experiment : nullptr,
      unfinished, folder};
  if (!paths.html.empty()) experiments::write_html(input, paths.html);
  if (!paths.csv.empty() && !rows.empty()) experiments::write_csv(input, paths.csv);
  if (!paths.sqlite.empty() && !rows.empty()) experiments::write_sqlite(input, paths.sqlite);
  if (!paths.markdown.empty()) experiments::write_markdown(input, paths.markdown);
  return {std::move(rows), unfinished};
}

std::string gate_lines(const WrittenReport& report) {
  std::string out;
  for (const std::string& sentence :
       experiments::gate_sentences(experiments::read_records(report.rows), report.unfinished))
    out += harmless(sentence) + "\n";
  return out;
}

std::string summary_table(const std::vector<Json>& rows, const std::string& unfinished) {
  const std::vector<Record> records = experiments::read_records(rows);
  return sweep_table(records) + footnotes(records, unfinished);
}

}  // namespace numemu::cli
