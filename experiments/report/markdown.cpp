// The headline and the table of points as Markdown, for terminals, pull requests and people without
// a browser.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/published/systems.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/configurations.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/headline.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/pairs.hpp"
#include "experiments/report/report.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "experiments/report/verdicts.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

std::string number(const std::optional<double>& x, int digits) {
  return x ? fmt::format("{:.{}f}", *x, digits) : "";
}

/// Predicted, measured and the interval.
std::array<std::string, 3> numbers_of(const Finding& finding) {
  return {figure_text(finding.predicted, finding.tolerance, ""),
          figure_text(finding.measured, half_width(finding), ""),
          interval_text(finding.low, finding.high, "")};
}

std::string table_line(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + markdown_cell(cell) + " |";
  return out + "\n";
}

/// A header, and the line below it.
std::string table_head(const std::vector<std::string>& header) {
  std::string out = table_line(header) + "|";
  for (std::size_t i = 0; i < header.size(); ++i) out += "---|";
  return out + "\n";
}

/// What an experiment concluded (experiment.json).
std::string experiment_part(const ExperimentFile& experiment) {
  const auto paragraph = [](const std::string& text, const char* end) {
    return text.empty() ? "" : markdown_cell(text) + end + "\n\n";
  };
  std::string out = "# Experiment: " + markdown_cell(experiment.name) + "\n\n" +
                    paragraph(experiment.question, "?") + paragraph(answer_of(experiment), "") +
                    paragraph(experiment.source, "");
  const std::vector<std::string> published = published_figures(experiment);
  std::vector<std::string> header = {"claimed", "worst finding", kPredictedTitle, kMeasuredTitle,
                                     "95 %",    "verdict",       "findings"};
  if (!published.empty()) header.insert(header.begin() + 1, "published");
  if (!experiment.claims.empty()) out += table_head(header);
  for (std::size_t i = 0; i < experiment.claims.size(); ++i) {
    const ClaimRow& claim = experiment.claims[i];
    const Finding finding = claim.worst.value_or(Finding());
    const auto [predicted, measured, interval] = numbers_of(finding);
    std::vector<std::string> cells = {
        claim.claim,
        claim.worst ? finding.what : "-",
        predicted,
        measured,
        interval,
        verdict_text(experiment, claim),
        fmt::format("{} hold, {} undecided, {} fail", claim.holds, claim.undecided, claim.fails)};
    if (!published.empty()) cells.insert(cells.begin() + 1, published[i]);
    out += table_line(cells);
  }
  if (!experiment.claims.empty())
    out += "\nNumbers are those of the worst finding of each claim.\n\n";
  for (const std::string& sentence : experiment.sentences)
    out += "- " + markdown_cell(sentence) + "\n";
  out += "\n" + table_head({"finding", kPredictedTitle, kMeasuredTitle, "95 %", "verdict"});
  for (const Finding& finding : experiment.findings) {
    const auto [predicted, measured, interval] = numbers_of(finding);
    out += table_line(
        {finding.what, predicted, measured, interval,
         std::string(to_string(finding.verdict)) + (finding.self_check ? " (self-check)" : "")});
  }
  for (const ResultTable& table : experiment.tables) {
    out += "\n" + markdown_cell(table.title) + ":\n\n" + table_head(table.header);
    for (const std::vector<std::string>& row : table.rows) out += table_line(row);
  }
  return out + "\n";
}

std::string points_part(const std::vector<ReportRow>& records) {
  const std::vector<ShownColumn> columns = shown_columns(records, Medium::markdown);
  std::vector<std::string> cells;
  for (const ShownColumn& column : columns) cells.push_back(column.title);
  std::string out = table_line(cells) + "|";
  for (const ShownColumn& column : columns) out += column.numeric ? "--:|" : "---|";
  out += "\n";
  for (const ReportRow& r : records) {
    cells.clear();
    for (const ShownColumn& column : columns) cells.push_back(column.cell(r));
    out += table_line(cells);
  }
  return out;
}

std::string rows_part(const std::vector<ReportRow>& records) {
  const Verdicts verdicts = judge_predictions(records);
  const bool layers = asks_for_layers(records);
  std::string out =
      layers ? "# W" + ranking_question(records).substr(1) + "\n\n" : "# Accuracy against bits\n\n";
  if (!layers) {
    for (const std::string& sentence : best_of_widths(configurations(records)))
      out += "- " + markdown_cell(sentence) + "\n";
    out += "\n";
  }
  for (const std::string& sentence :
       layers ? ranking_sentences(rank_layers(records)) : headline(records))
    out += markdown_cell(sentence) + "\n";
  for (const std::string& sentence : prediction_sentences(verdicts))
    out += markdown_cell(sentence) + "\n";
  out += "\n" + points_part(records);
  // One note of each kind stands for the others, which the HTML report has.
  for (const std::vector<SharedNote>& kind : by_kind(shared_notes(records))) {
    const SharedNote& note = kind.front();
    out += "\nNote: " + markdown_cell(note.text + " (" + listed_names(note.names) + ")") +
           (kind.size() > 1 ? fmt::format(" and {} more of this kind", kind.size() - 1) : "") +
           "\n";
  }
  if (verdicts.refused.empty()) return out;
  out += "\nTensors without a fitted distribution:\n\n";
  out += table_line({"layer", "role", "elements", "best family", "KS distance", "threshold"});
  out += "|---|---|--:|---|--:|--:|\n";
  for (const RefusedTensor& t : verdicts.refused) {
    out += table_line(
        {t.layer, t.role, number(t.n, 0), t.family, number(t.distance, 3), number(t.threshold, 3)});
  }
  return out;
}

}  // namespace

void write_markdown(const ReportInput& input, const std::string& path) {
  const std::vector<ReportRow> records = report_rows(*input.rows, input.folder);
  const bool answers = input.experiment && input.experiment->is_object();
  std::string out = answers ? experiment_part(read_experiment(*input.experiment)) : "";
  if (!answers || !records.empty()) out += rows_part(records);
  std::string gates;
  for (const std::string& sentence : gate_sentences(records, input.unfinished))
    gates += markdown_cell(sentence) + "\n\n";
  constexpr std::string_view kTitleEnd = "\n\n";
  out.insert(out.find(kTitleEnd) + kTitleEnd.size(), gates);
  write_atomically(path, {out});
}

}  // namespace numemu::experiments
