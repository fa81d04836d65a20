#include "experiments/workers/exchange_figure.hpp"

#include <string>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::exchange_figure_test {
namespace {

using namespace numemu::experiments;

Settings settings(const std::vector<std::string>& overrides) {
  return {with_links({{"net", "mlp", "mlp", "mlp", "network"}}), Size::smoke, overrides};
}

std::string message(const std::vector<std::string>& overrides) {
  try {
    link_setup(settings(overrides));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("The figure has every rule, dense float32 in front", "[fast][exchange_figure_test]") {
  Conclusion conclusion;
  add_exchange_figure(
      {summed("bfloat16", 16), gathered("topk", 0.01, 64)},
      settings({"link_between=0,1e9", "link_inside=0,1e9", "link_node=1", "link_coding=0"}),
      conclusion);
  REQUIRE(conclusion.charts.size() == 1);
  const Chart& chart = conclusion.charts[0];
  REQUIRE(chart.series.size() == 4);
  CHECK(chart.series[0].name == "float32");
  CHECK(chart.series[0].points.size() == 15);
  CHECK(chart.series[0].points.back().x == 100'000);
  CHECK(chart.series[0].points[3].y == Approx(2 * chart.series[1].points[3].y));
  REQUIRE(chart.series[3].points.size() == 1);
  CHECK(chart.series[3].points[0].name == "topk no longer");
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows.size() == 2);
  CHECK(conclusion.tables[0].rows[0][2] == "from 8");
  CHECK(conclusion.tables[0].rows[0][3] == "any");
  CHECK(conclusion.tables[1].rows.size() == 3 * 5);
  REQUIRE(conclusion.sentences.size() == 2);
  CHECK(conclusion.sentences[1] ==
        "Faster than dense float32 on paper, by the number of workers: from 8: bfloat16.");
}

TEST_CASE("Where a rule pays, in words", "[fast][exchange_figure_test]") {
  CHECK(pays_text({{8, false}}) == "never");
  CHECK(pays_text({{8, true}}) == "from 8");
  CHECK(pays_text({{8, true}, {512, false}, {8192, true}}) == "8 to below 512, from 8192");
}

TEST_CASE("Settings of links are read and refused by name", "[fast][exchange_figure_test]") {
  const LinkSetup setup = link_setup(settings({"link_node=4", "link_between=1e-5,1e9"}));
  CHECK(setup.cluster.node == 4);
  CHECK(setup.cluster.between.latency == 1e-5);
  CHECK(setup.cluster.between.bandwidth == 1e9);
  CHECK(setup.elements == 25e6);
  CHECK(setup.coding == 1e-11);
  CHECK(message({"link_node=3"}) == "--set: link_node: expected a power of two, not 3");
  CHECK(message({"link_inside=1e-6"}) ==
        "--set: link_inside: expected seconds and bytes per second (from 1), as in 5e-6,12.5e9, "
        "not '1e-6'");
  CHECK_FALSE(message({"link_between=1e-6,0"}).empty());
  CHECK_FALSE(message({"link_elements=0"}).empty());
}

TEST_CASE("The numbers of workers are multiples of a node", "[fast][exchange_figure_test]") {
  CHECK(figure_workers({.workers = 1, .node = 64}).front() == 64);
  CHECK(figure_workers({.workers = 1, .node = 64}).back() == 99'968);
}

}  // namespace numemu::exchange_figure_test
