#include "experiments/paper/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/cite/citation.hpp"
#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/number_text.hpp"

namespace numemu::experiments {
namespace {

using Lines = std::vector<std::vector<std::string>>;

/// A number in text: the true minus sign.
bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.eE+-−[], ±%") == std::string::npos;
}

std::string line_of(const std::vector<std::string>& cells, std::size_t columns) {
  std::string out;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::string text = i < cells.size() ? latex_text(cells[i]) : "";
    // A bracket behind \\ would be an argument of it.
    out += (i == 0 ? "" : " & ") + (i == 0 && text.starts_with('[') ? "{}" + text : text);
  }
  return out + " \\\\\n";
}

std::vector<std::string> numbers_of(const FindingRow& f) {
  const auto text = [](const std::optional<double>& x, const std::optional<double>& half) {
    return x ? fmt::format("{:.4g}{}", *x, spread_text(half)) : std::string();
  };
  return {text(f.predicted, f.tolerance), text(f.measured, f.half_width()),
          f.ci95 && f.ci95->known() ? fmt::format("[{:.4g}, {:.4g}]", *f.ci95->low, *f.ci95->high)
                                    : ""};
}

const std::vector<std::string> kFindingHeader = {"", "predicted ± tolerance",
                                                 "measured ± half of 95 %", "95 %", "verdict"};
const std::vector<bool> kFindingNumeric = {false, true, true, true, false};

std::vector<std::string> finding_line(const std::string& what, const FindingRow& finding,
                                      const std::string& verdict) {
  std::vector<std::string> out = {what};
  std::ranges::copy(numbers_of(finding), std::back_inserter(out));
  out.push_back(verdict);
  return out;
}

}  // namespace

std::string latex_table(const std::string& title, const std::vector<std::string>& header,
                        const Lines& rows, const std::vector<bool>& numeric) {
  std::string columns;
  for (std::size_t i = 0; i < header.size(); ++i)
    columns += i < numeric.size() && numeric[i] ? 'r' : 'l';
  std::string comment = title;
  std::ranges::replace_if(
      comment, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  std::string out = fmt::format(
      "% {}\n% needs \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{}}}\n"
      "\\toprule\n",
      comment, columns);
  out += line_of(header, header.size()) + "\\midrule\n";
  for (const std::vector<std::string>& row : rows) out += line_of(row, header.size());
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string latex_table(const ResultTable& table) {
  std::vector<bool> numeric;
  for (std::size_t c = 0; c < table.header.size(); ++c)
    numeric.push_back(std::ranges::all_of(table.rows, [c](const auto& row) {
      return c >= row.size() || row[c].empty() || is_number(row[c]);
    }));
  return latex_table(table.title, table.header, table.rows, numeric);
}

std::vector<std::pair<std::string, std::string>> latex_tables(const ReportInput& input) {
  std::vector<std::pair<std::string, std::string>> out;
  if (input.experiment && input.experiment->is_object()) {
    const ExperimentFile experiment = read_experiment(*input.experiment);
    Lines claims, findings;
    for (const ClaimRow& claim : experiment.claims)
      claims.push_back(finding_line(claim.claim, claim.worst.value_or(FindingRow()),
                                    claim.verdict ? to_string(*claim.verdict) : "not tested"));
    for (const FindingRow& finding : experiment.findings) {
      if (!finding.is_self_check())
        findings.push_back(finding_line(finding.what, finding, to_string(finding.judged())));
    }
    const auto add = [&](const char* name, std::vector<std::string> header, const Lines& lines) {
      if (lines.empty()) return;
      header[0] = name[0] == 'c' ? "claim" : "finding";
      out.emplace_back(name, latex_table(fmt::format("{} of experiment {}", name, experiment.name),
                                         header, lines, kFindingNumeric));
    };
    add("claims", kFindingHeader, claims);
    add("findings", kFindingHeader, findings);
    for (std::size_t i = 0; i < experiment.tables.size(); ++i) {
      out.emplace_back(fmt::format("table-{}", i + 1), latex_table(experiment.tables[i]));
    }
  }
  const std::vector<Record> records = read_records(*input.rows, input.folder);
  if (records.empty()) return out;
  // What all points share stands in the comment, so that the table fits a page.
  std::string shared;
  std::vector<std::string> header;
  std::vector<bool> numeric;
  Lines lines(records.size());
  for (const ShownColumn& column : shown_columns(records, Medium::terminal)) {
    std::vector<std::string> cells;
    for (const Record& record : records) cells.push_back(column.cell(record));
    if (cells.size() > 1 && std::ranges::count(cells, cells.front()) == std::ssize(cells)) {
      if (cells.front() != "-")
        shared += fmt::format("{}{} {}", shared.empty() ? "; all: " : ", ", column.title, cells[0]);
      continue;
    }
    header.push_back(column.title);
    numeric.push_back(column.numeric);
    for (std::size_t i = 0; i < cells.size(); ++i)
      lines[i].push_back(cells[i] == "-" ? "" : cells[i]);
  }
  if (!header.empty())
    out.emplace_back("points", latex_table("points" + shared, header, lines, numeric));
  return out;
}

}  // namespace numemu::experiments
