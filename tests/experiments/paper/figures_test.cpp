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

/// What draws the figures with these names.
Json page_with(const Study& study, const std::vector<std::string>& names) {
  Json page = paper_page(study.input(), embedded_assets());
  Json kept = Json::array();
  for (const Json& figure : page["figures"]) {
    if (std::ranges::find(names, figure["name"].get<std::string>()) != names.end())
      kept.push_back(figure);
  }
  page["figures"] = kept;
  return page;
}

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
  const Json page = page_with(study, {"e1", "accuracy"});
  const std::vector<PaperFigure> figures = draw_figures(page, embedded_assets());
  REQUIRE(figures.size() == 2);
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
  CHECK(figures[1].name == "accuracy");
  CHECK(figures[1].records == page["datasets"]["points"]);
}

TEST_CASE("figures: every point of few has its whole name, beside it or by a number", "[fast]") {
  if (!draws()) return;
  const Study study;
  Json page = page_with(study, {"accuracy"}), points = Json::array();
  for (const Json& point : page["datasets"]["points"]) {
    if (points.size() == 16 || point["top1"].is_null() || point["bits"].is_null()) continue;
    const auto i = static_cast<double>(points.size());
    points.push_back(point);
    points.back().update(
        {{"label", fmt::format("group(posit(4,2),16,float16) / mx(e2m1,{})", points.size() - 1)},
         {"bits", 3 + i / 5},
         {"top1", 60 + 2 * i},
         {"low", 59 + 2 * i},
         {"high", 61 + 2 * i}});
  }
  REQUIRE(points.size() == 16);
  points[15]["label"] = "int4";
  page["datasets"]["points"] = points;
  const std::vector<PaperFigure> figures = draw_figures(page, embedded_assets());
  REQUIRE(figures.size() == 1);
  for (const std::string& svg : figures[0].svgs) {
    std::string text;  // without tags and the spaces where lines of the key end
    bool tag = false;
    for (const char c : svg) {
      if (c == '<') tag = true;
      if (!tag && c != ' ') text += c;
      if (c == '>') tag = false;
    }
    INFO(text);
    CHECK(text.find("int4") != text.npos);
    CHECK(text.find("…") == text.npos);
    for (std::size_t i = 0; i < 15; ++i)
      CHECK(text.find(fmt::format("group(posit(4,2),16,float16)/mx(e2m1,{})", i)) != text.npos);
  }
}

TEST_CASE("figures: hostile names stay text; PDF has the printed width", "[fast]") {
  if (!draws()) return;
  const Study study = poisoned_study();
  const Scratch scratch("figures-hostile");
  const WrittenFigures written =
      write_figures(draw_figures(page_with(study, {"e3", "predicted"}), embedded_assets()),
                    scratch.folder.string());
  CHECK(written.figures == 2);
  check_xml(scratch);
  if (!written.pdf) WARN("skipped: rsvg-convert is not installed");
  for (const char* name : {"e3", "predicted"}) {
    for (const PaperWidth& width : kPaperWidths) {
      const std::string file = fmt::format("{}-{}", name, width.suffix);
      INFO(file);
      check_svg(scratch.read(file + ".svg"), width.inches);
      if (!written.pdf) continue;
      std::string pdf = scratch.read(file + ".pdf");
      std::ranges::replace(pdf, '\0', ' ');  // patterns end at a zero
      const auto box = Pattern("/MediaBox \\[ 0 0 ([0-9.]+) ").next(pdf);
      REQUIRE(box.size() == 2);
      CHECK(std::stod(box[1]) == Approx(72 * width.inches).margin(0.5));  // whole pixels
    }
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
