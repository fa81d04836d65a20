// numemu plot, report --figures, --cite and --columns from outside: files, messages, refusals.
#include <cstdlib>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/experiments/small_network.hpp"

namespace plot_command_test {

using namespace numemu::test;
using Catch::Contains;

namespace {

/// Whether this machine draws; says so where it does not.
bool has_node() {
  if (std::system("node --version >/dev/null 2>&1") == 0) return true;
  WARN("skipped: no Node.js");
  return false;
}

}  // namespace

TEST_CASE("plot: refusals in one line", "[fast]") {
  const Scratch s;
  s.file("a-file", "");
  check_refusals(
      s, {{"plot error --format int4 --out f", "--dist: expected with plot error"},
          {"plot error --dist normal --out f", "--format: expected with plot error"},
          {"plot cells --format int4 --dist normal --out f", "--dist: not allowed with plot cells"},
          {"plot cells --format int4 --rows r --out f", "--rows: not allowed with plot cells"},
          {"plot cells --format int4 --rounding rtz --out f",
           "--rounding: not allowed with plot cells"},
          {"plot cells --format int4 --seed 4 --out f", "--seed: not allowed with plot cells"},
          {"plot predicted --rows r --seed 4 --out f", "--seed: not allowed with plot predicted"},
          {"report --columns --csv c.csv", "--csv: not allowed with --columns"},
          {"plot predicted --format int4 --rows r --out f",
           "--format: not allowed with plot predicted"},
          {"plot predicted --out f", "--rows: expected with plot predicted"},
          {"plot curve --format int4 --out f", "'curve': expected error, cells or predicted"},
          {"plot cells --format int4", "--out"},
          {"plot cells --format int4 --out a-file", "a-file"},
          {"report", "folder: expected DIR"}});
}

TEST_CASE("report: figures, how to cite, what columns mean", "[fast]") {
  const Scratch s;
  numemu::experiments::testing::write_click_network(s.path + "/n.safetensors");
  s.file("s.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "grid": {"roles.weight.format": ["int8", "e4m3"]}})");
  REQUIRE(s.run("sweep s.json --out r --quiet").code == 0);
  const Result cited = s.call("report r --cite");
  REQUIRE(cited.code == 0);
  for (const char* part : {"command: numemu sweep sweep.json", "version: numemu ", "sweep.json: ",
                           "recipes: ", "network dlrm-small: ", "data clicks: ", "@misc{numemu-"})
    CHECK_THAT(cited.out, Contains(part));
  CHECK_THAT(read_file(s.path + "/r/report.html"), Contains("@misc{numemu-"));
  for (const auto& [option, value] :
       {std::pair("--figures", " zz"), {"--csv", " c.csv"}, {"--json", ""}, {"--columns", ""}}) {
    CAPTURE(option);
    const Result refused = s.call(std::string("report r --cite ") + option + value);
    check_refused(refused, "not allowed with --");
    CHECK(refused.code == 2);
  }
  CHECK_THAT(s.call("report --columns").out, Contains("| `sqnr_db` | number | "));
  if (!has_node()) return;
  const Result drawn = s.run("report r --figures fig");
  INFO(drawn.err);
  REQUIRE(drawn.code == 0);
  CHECK_THAT(drawn.err, Contains("fig: ") && Contains("figures, 1 tables"));
  for (const char* name : {"sqnr-1col.svg", "sqnr-2col.svg", "sqnr.csv", "points.tex"})
    CHECK(std::filesystem::exists(s.path + "/fig/" + name));
  const Result predicted = s.call("plot predicted --rows r --out p");
  INFO(predicted.err);
  CHECK(predicted.code == 0);
  CHECK_THAT(predicted.out, Contains("p/predicted-2col.svg"));
}

TEST_CASE("report: what draws is missed before the work", "[fast]") {
  const Scratch s;
  s.file(
      "s.json",
      R"({"numemu_sweep": 1, "net": "lenet", "data": "glyphs", "grid": {"roles.weight.format": ["int8"]}})");
  const Result none = s.run("sweep s.json --out r --figures fig", "PATH=/nowhere;");
  CHECK(none.code == 2);
  CHECK_THAT(none.err, Contains("Node.js") || Contains("charting libraries"));
}

}  // namespace plot_command_test
