// Figures without a report: what they draw, and what is refused before the work.
#include "api/figures/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "experiments/paper/figures.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace plot_test {

using namespace numemu;
using Catch::Contains;

namespace {

bool api_draws() {
  try {
    experiments::require_drawing(experiments::embedded_assets());
    return true;
  } catch (const Error& error) {
    WARN("skipped: " << error.what());
    return false;
  }
}

std::size_t lines_of(const std::string& text) { return std::ranges::count(text, '\n'); }

}  // namespace

TEST_CASE("plot: error against bits has the rows of analyze's table", "[fast]") {
  if (!api_draws()) return;
  const test::Workplace w;
  const api::AnalysisTableRequest request{.formats = {"int{3,4},e2m1,mxfp4"},
                                          .numbers = {"normal", "laplace"},
                                          .rules = {},
                                          .rounding = "rne"};
  const api::WrittenPlot plot = api::plot_error(request, w / "fig");
  REQUIRE(plot.figures == std::vector<std::string>{"error-normal", "error-laplace"});
  const std::string csv = test::read_file(w / "fig/error-laplace.csv");
  for (const api::AnalyzedFormat& row : api::analyze_table(request).rows) {
    if (row.law != "laplace" || row.kind == api::AnalyzedFormat::Kind::limit ||
        row.kind == api::AnalyzedFormat::Kind::reached)
      continue;
    INFO(row.format << "\n" << csv);
    CHECK(csv.find(row.format) != csv.npos);
    CHECK(csv.find(fmt::format("{}", row.sqnr_db)) != csv.npos);
  }
  CHECK(csv.find("Lloyd-Max") != csv.npos);
  CHECK(std::filesystem::exists(w / "fig/error-normal-1col.svg"));
}

TEST_CASE("plot: formats without sign are beside limits of |x|, draws of heavy tails are hollow",
          "[fast]") {
  if (!api_draws()) return;
  const test::Workplace w;
  const api::WrittenPlot plot = api::plot_error(
      {.formats = {"uint4,int4,mxfp4"}, .numbers = {"student-t:3"}, .rules = {}}, w / "fig");
  REQUIRE(plot.figures == std::vector<std::string>{"error-abs-student-t-3", "error-student-t-3"});
  const std::string folded = test::read_file(w / "fig/error-abs-student-t-3.csv"),
                    csv = test::read_file(w / "fig/error-student-t-3.csv");
  CHECK_THAT(folded, Contains("int,false,uint4,") && Contains("Lloyd-Max,true,"));
  CHECK_THAT(csv, Contains(",heavy_tails\r\n") && Contains("\"block, heavy tails\",false,mxfp4,") &&
                      Contains("int,false,int4,") && Contains(",false\r\n") &&
                      Contains(",true\r\n"));
  // The outline of a marker, and its hole.
  CHECK_THAT(test::read_file(w / "fig/error-student-t-3-2col.svg"),
             Contains("block, heavy tails") && Contains("block formats (hollow)"));
  CHECK_THAT(test::read_file(w / "fig/error-abs-student-t-3-2col.svg"), !Contains("hollow"));
}

TEST_CASE("plot: cells are the positive values of a format", "[fast]") {
  if (!api_draws()) return;
  const test::Workplace w;
  const api::WrittenPlot plot = api::plot_cells({"e2m1,int4"}, w / "fig");
  CHECK(plot.figures == std::vector<std::string>{"spacing", "steps"});
  std::size_t positive = 0;
  for (const char* name : {"e2m1", "int4"})
    positive += static_cast<std::size_t>(
        std::ranges::count_if(finite_values(find_format(name)), [](double x) { return x > 0; }));
  CHECK(lines_of(test::read_file(w / "fig/steps.csv")) == positive + 1);
  CHECK(lines_of(test::read_file(w / "fig/spacing.csv")) == positive + 1);
}

TEST_CASE("plot: refusals", "[fast]") {
  if (!api_draws()) return;
  const test::Workplace w;
  CHECK_THROWS_WITH(api::plot_cells({"float32"}, w / "fig"), Contains("at most 10 bits"));
  CHECK_THROWS_WITH(api::plot_cells({"nothing"}, w / "fig"), Contains("nothing"));
  CHECK_THROWS_WITH(api::plot_cells({"e2m1"}, ""), Contains("--out"));
}

}  // namespace plot_test
