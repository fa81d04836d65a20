// Figures as files: CSV has what is drawn, SVG is XML of the printed width with letters of 8
// points.
#include "experiments/paper/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "experiments/programs/program.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"
#include "tests/pattern.hpp"

namespace figures_test {

using namespace numemu::experiments;
using numemu::Json;
using numemu::test::Pattern;

namespace {

/// Whether this build and machine draw; says so where they do not.
bool draws() {
  try {
    require_drawing(embedded_assets());
    return true;
  } catch (const numemu::Error& error) {
    WARN("skipped: " << error.what());
    return false;
  }
}

/// Fields of RFC 4180.
std::vector<std::vector<std::string>> parsed_csv(const std::string& text) {
  std::vector<std::vector<std::string>> out(1);
  std::string cell;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else if (text[i] == '"') {
        quoted = false;
      } else {
        cell += text[i];
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',' || text.substr(i, 2) == "\r\n") {
      out.back().push_back(std::move(cell));
      cell.clear();
      if (text[i] == ',') continue;
      ++i;
      out.emplace_back();
    } else {
      cell += text[i];
    }
  }
  out.pop_back();
  return out;
}

void check_csv(const Json& records) {
  const auto table = parsed_csv(figure_csv(records));
  REQUIRE(table.size() == records.size() + 1);
  std::size_t line = 1, cells = 0;
  for (const Json& record : records) {
    for (const auto& [key, value] : record.items()) {
      const auto column = std::ranges::find(table[0], key);
      REQUIRE(column != table[0].end());
      std::string cell = table[line][static_cast<std::size_t>(column - table[0].begin())];
      if (value.is_null()) {
        CHECK(cell.empty());
      } else if (value.is_string()) {
        if (cell.starts_with("'")) cell.erase(0, 1);  // no formula
        CHECK(cell == value.get<std::string>());
      } else if (value.is_number()) {
        CHECK(std::strtod(cell.c_str(), nullptr) == value.get<double>());
      }
      ++cells;
    }
    ++line;
  }
  CHECK(cells >= records.size());
}

void check_svg(const std::string& svg, double inches) {
  INFO(svg.substr(0, 300));
  std::string rest = svg;
  const auto box =
      Pattern("<svg[^>]* width=\"([0-9.]+)in\"[^>]* viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"")
          .next(rest);
  REQUIRE(box.size() == 4);
  CHECK(std::stod(box[1]) == inches);
  const double points = inches * 72 / std::stod(box[2]);
  std::size_t letters = 0;
  const Pattern size("font-size=\"([0-9.]+)px\"");
  for (auto found = size.next(rest); !found.empty(); found = size.next(rest)) {
    CHECK(std::stod(found[1]) * points >= kLeastPoints);
    ++letters;
  }
  CHECK(letters > 3);
  for (const char* open : {"var(--", "color-mix", "<script", "<image", "url(http"})
    CHECK(svg.find(open) == std::string::npos);
}

struct Study {
  std::vector<Json> rows = sample::rows();
  Json sweep = sample::sweep(), tensors = sample::tensors(), experiment = sample::experiment();

  ReportInput input() const {
    return {
        .sweep = &sweep, .rows = kept_rows(rows), .tensors = &tensors, .experiment = &experiment};
  }
};

Study poisoned_study() {
  Study study;
  for (Json& row : study.rows) row = sample::poisoned(row);
  study.sweep = sample::poisoned(study.sweep);
  study.tensors = sample::poisoned(study.tensors);
  study.experiment = sample::poisoned(study.experiment);
  return study;
}

/// Whether every file is XML, by Python's parser.
void check_xml(const Scratch& scratch) {
  const EndedProgram ended = run_program({"python3", "-c",
                                          "import glob, sys, xml.dom.minidom\n"
                                          "files = glob.glob(sys.argv[1] + '/*.svg')\n"
                                          "assert files\n"
                                          "[xml.dom.minidom.parse(file) for file in files]\n",
                                          scratch.folder.string()},
                                         ProgramOutput::kept);
  INFO(ended.out);
  CHECK(ended.fine());
}

}  // namespace

TEST_CASE("figures: CSV is the data of the figure, SVG has the printed width", "[fast]") {
  if (!draws()) return;
  const Study study;
  const Json page = paper_page(study.input(), embedded_assets());
  const std::vector<PaperFigure> figures = draw_figures(page, embedded_assets());
  REQUIRE(figures.size() == page["figures"].size());
  for (const PaperFigure& figure : figures) {
    INFO(figure.name);
    REQUIRE(figure.svgs.size() == std::size(kPaperWidths));
    for (std::size_t i = 0; i < figure.svgs.size(); ++i)
      check_svg(figure.svgs[i], kPaperWidths[i].inches);
    check_csv(figure.records);
  }
  // What is drawn is what the page holds.
  CHECK(figures[0].name == "e1");
  CHECK(figures[0].records == page["experiment"][0]["records"]);
  const auto accuracy = std::ranges::find(figures, "accuracy", &PaperFigure::name);
  REQUIRE(accuracy != figures.end());
  CHECK(accuracy->records == page["datasets"]["points"]);
}

TEST_CASE("figures: hostile names stay text", "[fast]") {
  if (!draws()) return;
  const Study study = poisoned_study();
  const Scratch scratch("figures-hostile");
  const WrittenFigures written = write_paper(study.input(), scratch.folder.string());
  CHECK(written.figures > 5);
  CHECK(written.tables > 2);
  check_xml(scratch);
  for (const auto& entry : std::filesystem::directory_iterator(scratch.folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".svg"))
      check_svg(scratch.read(name), name.find("1col") == name.npos ? 7 : 3.3);
  }
}

TEST_CASE("figures: PDF has the printed width", "[fast]") {
  if (!draws()) return;
  Study study;
  study.rows.resize(3);
  const Scratch scratch("figures-pdf");
  if (!write_paper(study.input(), scratch.folder.string()).pdf) {
    WARN("skipped: rsvg-convert is not installed");
    return;
  }
  for (const PaperWidth& width : kPaperWidths) {
    std::string pdf = scratch.read(fmt::format("e1-{}.pdf", width.suffix));
    const auto box = Pattern("/MediaBox \\[ 0 0 ([0-9.]+) ").next(pdf);
    REQUIRE(box.size() == 2);
    CHECK(std::stod(box[1]) == Approx(72 * width.inches).margin(1));  // whole points
  }
}

TEST_CASE("figures: cells of formulas, missing keys and whole numbers", "[fast]") {
  const Json records = Json::array(
      {Json::object({{"a", "=1+1"}, {"b", 3}}), Json::object({{"b", nullptr}, {"c, d", 0.1}})});
  CHECK(figure_csv(records) == "a,b,\"c, d\"\r\n'=1+1,3,\r\n,,0.1\r\n");
}

TEST_CASE("figures: a build without libraries says what it lacks", "[fast]") {
  ReportAssets bare = embedded_assets();
  bare.libraries = "";
  CHECK_THROWS_WITH(require_drawing(bare), Catch::Contains("charting libraries"));
}

}  // namespace figures_test
