#include "cli/report_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/sweep_table.hpp"
#include "cli/talk.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/gate_text.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/record.hpp"

namespace numemu::cli {
namespace {

using experiments::Record, experiments::Row;

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
       experiments::gate_sentences(experiments::read_records(report.rows), report.unfinished))
    out += harmless(sentence) + "\n";
  return out;
}

std::string summary_table(const std::vector<Row>& rows, const std::string& unfinished) {
  const std::vector<Record> records = experiments::read_records(rows);
  return sweep_table(records) + footnotes(records, unfinished);
}

}  // namespace numemu::cli
