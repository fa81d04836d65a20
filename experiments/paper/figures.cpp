#include "experiments/paper/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "experiments/paper/tables.hpp"
#include "experiments/programs/program.hpp"
#include "experiments/report/columns.hpp"
#include "experiments/report/escape.hpp"
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

}  // namespace numemu::experiments
