#include "experiments/paper/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "experiments/cite/citation.hpp"
#include "experiments/engine/experiment_file.hpp"
#include "experiments/programs/program.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::experiments {
namespace {

constexpr const char* kNode = "node";
constexpr const char* kConverter = "rsvg-convert";

/// Reads libraries, page and the name of its answer from the command line.
constexpr const char* kStart = R"(
globalThis.document = measuringDocument();
require("vm").runInThisContext(require("fs").readFileSync(process.argv[2], "utf8"));
drawPaperFigures(JSON.parse(require("fs").readFileSync(process.argv[3], "utf8")))
  .then((figures) => require("fs").writeFileSync(process.argv[4], JSON.stringify(figures)))
  .catch((error) => { console.error(String(error.message)); process.exitCode = 1; });
)";

/// Keys of all records, in the order in which they appear.
std::vector<std::string> keys_of(const Json& records) {
  std::vector<std::string> keys;
  for (const Json& record : records) {
    for (const auto& [key, value] : record.items()) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

std::string csv_value(const Json* value) {
  if (!value || value->is_null()) return "";
  if (value->is_string()) return csv_field(spreadsheet_text(value->get<std::string>()));
  return csv_field(value->is_number() ? fmt::format("{}", value->get<double>()) : value->dump());
}

void write_pdf(const std::string& svg, const std::string& pdf) {
  const EndedProgram ended =
      run_program({kConverter, "--format=pdf", "--output=" + pdf, svg}, ProgramOutput::kept);
  if (!ended.fine())
    throw file_error(fmt::format("{}: {} failed: {}", pdf, kConverter, ended.first_line()));
}

}  // namespace

void require_drawing(const ReportAssets& assets) {
  if (assets.libraries.empty())
    throw file_error(
        "this program was built without its charting libraries: install node and npm and build "
        "again");
  const EndedProgram ended = run_program({kNode, "--version"}, ProgramOutput::kept);
  if (ended.missing())
    throw file_error("figures are drawn by Node.js, which is not installed (Debian: nodejs)");
  if (!ended.fine())
    throw file_error(fmt::format(
        "{}: {}", kNode, ended.error != 0 ? std::strerror(ended.error) : ended.first_line()));
}

std::vector<PaperFigure> draw_figures(const Json& page, const ReportAssets& assets) {
  require_drawing(assets);
  const WorkFolder work;
  const std::string libraries = work / "libraries.js", script = work / "draw.js",
                    data = work / "page.json", answer = work / "figures.json";
  Json asked = page;
  asked["style"] = std::string(assets.style);
  Json& widths = asked["inches"] = Json::array();
  for (const PaperWidth& width : kPaperWidths) widths.push_back(width.inches);
  write_atomically(libraries, {assets.libraries});
  write_atomically(script, {assets.script, kStart});
  write_atomically(data, {asked.dump(-1, Json::NotUtf8::replace)});
  const EndedProgram ended =
      run_program({kNode, script, libraries, data, answer}, ProgramOutput::kept);
  if (!ended.fine())
    throw file_error(fmt::format("{} could not draw the figures: {}", kNode, ended.first_line()));
  std::vector<PaperFigure> out;
  for (const Json& figure : parse_json(read_text(answer), answer))
    out.push_back({figure["name"].get<std::string>(),
                   figure["svgs"].get<std::vector<std::string>>(), figure["records"]});
  return out;
}

std::string figure_csv(const Json& records) {
  const std::vector<std::string> keys = keys_of(records);
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "" : ",") + csv_field(key);
  out += "\r\n";
  for (const Json& record : records) {
    for (const std::string& key : keys)
      out += (&key == &keys.front() ? "" : ",") + csv_value(json_at(record, {key.c_str()}));
    out += "\r\n";
  }
  return out;
}

WrittenFigures write_figures(const std::vector<PaperFigure>& figures, const std::string& folder) {
  make_folder(folder);
  WrittenFigures out;
  out.pdf = run_program({kConverter, "--version"}, ProgramOutput::kept).fine();
  for (const PaperFigure& figure : figures) {
    const std::string stem = folder + "/" + figure.name;
    write_atomically(stem + ".csv", {figure_csv(figure.records)});
    for (std::size_t i = 0; i < figure.svgs.size(); ++i) {
      const std::string path = fmt::format("{}-{}", stem, kPaperWidths[i].suffix);
      write_atomically(path + ".svg", {figure.svgs[i]});
      if (out.pdf) write_pdf(path + ".svg", path + ".pdf");
    }
    ++out.figures;
  }
  return out;
}

WrittenFigures write_paper(const Json& page,
                           const std::vector<std::pair<std::string, std::string>>& tables,
                           const std::string& folder) {
  WrittenFigures out = write_figures(draw_figures(page, embedded_assets()), folder);
  for (const auto& [name, table] : tables) {
    write_atomically(folder + "/" + name + ".tex", {table});
    ++out.tables;
  }
  return out;
}

WrittenFigures write_paper(const ReportInput& input, const std::string& folder) {
  return write_paper(paper_page(input, embedded_assets()), latex_tables(input), folder);
}
namespace {

using Lines = std::vector<std::vector<std::string>>;

/// A number in text: the true minus sign.
bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.eE+-−[], ±%") == std::string::npos;
}

/// The text with "±" for "+-" and the true minus sign where a number begins with it.
std::string with_signs(const std::string& text) {
  const bool number = is_number(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char before = i == 0 ? ' ' : text[i - 1], next = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool begins = std::strchr(" [(=", before) != nullptr || (number && before == 'e');
    if (text[i] == '+' && next == '-') {
      out += "±";
      ++i;
    } else if (text[i] == '-' && begins && next >= '0' && next <= '9') {
      out += "−";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string line_of(const std::vector<std::string>& cells, std::size_t columns) {
  std::string out;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::string text = i < cells.size() ? latex_text(with_signs(cells[i])) : "";
    // A bracket behind \\ would be an argument of it.
    out += (i == 0 ? "" : " & ") + (i == 0 && text.starts_with('[') ? "{}" + text : text);
  }
  return out + " \\\\\n";
}

const std::vector<std::string> kFindingHeader = {"", kPredictedTitle, kMeasuredTitle, "95 %",
                                                 "verdict"};
const std::vector<bool> kFindingNumeric = {false, true, true, true, false};

std::vector<std::string> finding_line(const std::string& what, const Finding& finding,
                                      const std::string& verdict) {
  return {what, figure_text(finding.predicted, finding.tolerance, ""),
          figure_text(finding.measured, half_width(finding), ""),
          interval_text(finding.low, finding.high, ""), verdict};
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
      claims.push_back(
          finding_line(claim.claim, claim.worst.value_or(Finding()),
                       claim.verdict == Verdict::none ? "not tested" : to_string(claim.verdict)));
    for (const Finding& finding : experiment.findings) {
      if (!finding.self_check)
        findings.push_back(finding_line(finding.what, finding, to_string(finding.verdict)));
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
  const std::vector<ReportRow> records = report_rows(*input.rows, input.folder);
  if (records.empty()) return out;
  // What all points share stands in the comment, so that the table fits a page.
  std::string shared;
  std::vector<std::string> header;
  std::vector<bool> numeric;
  Lines lines(records.size());
  for (const ShownColumn& column : shown_columns(records, Medium::terminal)) {
    std::vector<std::string> cells;
    for (const ReportRow& record : records) cells.push_back(column.cell(record));
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
