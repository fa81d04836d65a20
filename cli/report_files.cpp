#include "cli/report_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/text/table.hpp"
#include "cli/talk.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/configurations.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "experiments/report/verdicts.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

using experiments::ReportRow, experiments::Room, experiments::Row, experiments::ShownColumn;

/// Characters of a name where it has to be cut.
constexpr std::size_t kShortName = 20;

struct RoomWords {
  Room room;
  const char* words;
};
constexpr RoomWords kGivenUp[] = {{Room::expected_interval, "intervals of what is expected"},
                                  {Room::conversions, "rounding, overflow and scale rule"},
                                  {Room::unit_names, "whole names of units"},
                                  {Room::top1_interval, "intervals of top-1"},
                                  {Room::perplexity, "perplexity"},
                                  {Room::bits, "bits"},
                                  {Room::top1, "top-1"},
                                  {Room::expected, "expected accuracy"},
                                  {Room::layers, "layers"},
                                  {Room::unit, "unit"},
                                  {Room::settings, "settings"},
                                  {Room::predicted, "predictions"},
                                  {Room::formats, "formats"},
                                  {Room::names, "whole names"}};
using Rooms = std::set<Room>;

/// All columns that the rows have something for.
std::vector<ShownColumn> columns_of(const std::vector<ReportRow>& records, const Rooms& without) {
  std::vector<ShownColumn> columns =
      experiments::shown_columns(records, experiments::Medium::terminal);
  if (experiments::asks_for_layers(records)) {
    // Rules of single layers: the point's name says which, formats of all others do not.
    std::erase_if(columns,
                  [](const ShownColumn& c) { return c.key == "activations" || c.key == "other"; });
    *std::ranges::find(columns, "weights", &ShownColumn::key) = {
        "point", "point", false, [](const ReportRow& r) { return r.label; }};
  }
  std::erase_if(columns, [&](const ShownColumn& c) { return without.contains(c.room); });
  for (ShownColumn& c : columns) {
    if (without.contains(c.shortened)) c.cell = c.shorter;
  }
  // Rows that nothing tells apart but their figures have their numbers.
  constexpr std::string_view kPoint[] = {"recipe", "point",    "weights", "activations",
                                         "layers", "settings", "unit"};
  std::set<std::vector<std::string>> points;
  for (const ReportRow& r : records) {
    std::vector<std::string> point;
    for (const ShownColumn& c : columns) {
      if (std::ranges::find(kPoint, c.title) != std::end(kPoint)) point.push_back(c.cell(r));
    }
    points.insert(std::move(point));
  }
  if (points.size() < records.size() || without.contains(Room::names))
    columns.insert(columns.begin(), {"position", "#", true, [](const ReportRow& r) {
                                       return fmt::format("{}", r.position + 1);
                                     }});
  return columns;
}

std::string table_without(const std::vector<ReportRow>& records, const Rooms& without) {
  const std::vector<ShownColumn> columns = columns_of(records, without);
  std::vector<std::string> header;
  for (const ShownColumn& column : columns) header.push_back(column.title);
  std::vector<std::vector<std::string>> cells;
  for (const ReportRow& r : records) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const ShownColumn& column : columns) {
      std::string cell = column.cell(r);
      const bool name =
          column.title == "recipe" || column.title == "weights" || column.title == "activations";
      if (name && without.contains(Room::names) && cell.size() > kShortName)
        cell = cell.substr(0, kShortName - 3) + "...";
      line.push_back(std::move(cell));
    }
  }
  return records.size() < 2 ? api::folded_table(header, cells) : api::text_table(header, cells);
}

/// Rounding, overflow and scale rule of the roles of all rows, where they agree.
std::string common_conversion(const std::vector<ReportRow>& records) {
  std::set<std::string> all;
  for (const ReportRow& r : records) {
    for (const experiments::ReportRole* role : {&r.weight, &r.activation}) {
      const std::string text = experiments::role_text(*role);
      const std::size_t behind = text.find(' ');
      if (behind != std::string::npos) all.insert(text.substr(behind + 1));
    }
  }
  return all.size() == 1 ? *all.begin() : "";
}

/// One line a row: numerics, bits, accuracy, its change from float32, SQNR measured and predicted.
/// It has at most 120 columns of characters: of one row what does not fit stands below, of several
/// it is left to the report and named. Rows of different points never have the same line.
std::string sweep_table(const std::vector<ReportRow>& records) {
  Rooms without;
  std::string table = table_without(records, without);
  std::vector<std::string> left_out;
  for (const RoomWords& given_up : kGivenUp) {
    if (records.size() < 2 || api::width_of(table) <= api::kTerminalWidth) break;
    without.insert(given_up.room);
    std::string narrower = table_without(records, without);
    if (narrower == table) continue;
    table = std::move(narrower);
    left_out.emplace_back(given_up.words);
  }
  if (left_out.empty()) return table;
  const std::string common = common_conversion(records);
  if (!common.empty() && without.contains(Room::conversions)) {
    table += "rounding, overflow and scale rule: " + common + "\n";
    std::erase(left_out, "rounding, overflow and scale rule");
  }
  if (left_out.empty()) return table;
  return table + joined(left_out, ", ") + ": in the report and report.csv\n";
}

/// The figure of float32 that the changes of several rows are from; "" where they differ in it or
/// one of them is float32's.
std::string shared_baseline(const std::vector<ReportRow>& records) {
  if (records.size() < 2) return "";
  const experiments::JudgedFigure& first = records.front().judged;
  const bool shared = first.baseline && std::ranges::all_of(records, [&](const ReportRow& r) {
                        return !r.is_baseline() && r.judged.measure->name == first.measure->name &&
                               r.judged.baseline == first.baseline;
                      });
  return shared ? first.measure->text(*first.baseline) : "";
}

/// Explains the cells of the table: why no SQNR is predicted, what predictions leave out,
/// where numbers stop being finite, and notes.
std::string footnotes(const std::vector<ReportRow>& records, const std::string& unfinished) {
  std::string out;
  const auto say = [&out](const std::string& line) { out += harmless(line) + "\n"; };
  if (const std::string float32 = shared_baseline(records); !float32.empty())
    say("changes are from float32's " + float32);
  if (std::any_of(records.begin(), records.end(),
                  [](const ReportRow& r) { return r.unit_ignored(); }))
    say(kUnitLeftOut);
  if (std::any_of(records.begin(), records.end(), [](const ReportRow& r) {
        return r.sqnr_missed() || (r.judged.predicted && r.judged.verdict() == Verdict::fails);
      }))
    say(
        fmt::format("{} fails: of SQNR the measured interval lies more than {:g} dB off, of an "
                    "expected figure the measured one lies outside of its interval of 99.9 %",
                    experiments::kMissed, experiments::kLayerHolds));
  std::vector<experiments::SharedNote> left_out;
  for (const ReportRow& r : records) {
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
  for (const ReportRow& r : records) {
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

std::string number_text(const std::optional<double>& x, const char* format, double factor) {
  if (!x) return "-";
  return factor == 100 ? experiments::percent_text(*x, format)
                       : fmt::format(fmt::runtime(format), factor * *x);
}

std::string interval_text(const experiments::Member<experiments::Ends>& ends, const char* format,
                          double factor) {
  if (!ends || (!ends->low && !ends->high)) return "-";
  return fmt::format("[{}, {}]", number_text(ends->low, format, factor),
                     number_text(ends->high, format, factor));
}

std::string gate_lines(const api::WrittenReport& report) {
  std::string out;
  for (const std::string& sentence :
       experiments::gate_sentences(experiments::report_rows(report.rows), report.unfinished))
    out += harmless(sentence) + "\n";
  return out;
}

std::string summary_table(const std::vector<Row>& rows, const std::string& unfinished) {
  const std::vector<ReportRow> records = experiments::report_rows(rows);
  return sweep_table(records) + footnotes(records, unfinished);
}

}  // namespace numemu::cli
