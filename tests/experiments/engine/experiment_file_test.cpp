// Charts as JSON: every field, and null or absence where a number is not finite.
#include "experiments/engine/experiment_file.hpp"

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace experiment_file_test {

using namespace numemu::experiments;
using numemu::Json, numemu::json_of;

TEST_CASE("a chart as JSON", "[fast]") {
  Chart chart;
  chart.kind = Chart::Kind::points;
  chart.title = "Error over share";
  chart.caption = "rne";
  chart.x = "share kept";
  chart.y = "NSR";
  chart.log_y = true;
  chart.series = {
      {"measured", {{.x = 0.5, .name = "2:4", .y = 0.1, .low = 0.09, .high = 0.11}}},
      {"predicted", {{.x = 0.5, .y = 0.1}, {.x = 1, .y = NAN, .low = 0, .high = NAN}}, true}};
  CHECK(json_of(chart_row(chart)) == Json::parse(R"({
    "kind": "points", "title": "Error over share", "caption": "rne",
    "x": "share kept", "y": "NSR", "log_x": false, "log_y": true,
    "series": [
      {"name": "measured", "predicted": false,
       "points": [{"name": "2:4", "x": 0.5, "y": 0.1, "ci95": [0.09, 0.11]}]},
      {"name": "predicted", "predicted": true,
       "points": [{"x": 0.5, "y": 0.1}, {"x": 1.0, "y": null}]}]})"));
}

TEST_CASE("series of a chart by their names", "[fast]") {
  Chart chart;
  chart.add("a", {.x = 1, .y = 2}, {.x = 1, .y = 3});
  chart.of("b").points.push_back({.x = 9});
  chart.add("a", {.x = 4, .y = 5}, {.x = 4, .y = 6});
  REQUIRE(chart.series.size() == 3);
  CHECK(chart.series[0].name == "a measured");
  CHECK_FALSE(chart.series[0].predicted);
  CHECK(chart.series[1].name == "a predicted");
  CHECK(chart.series[1].predicted);
  CHECK(chart.series[1].points[1].y == 6);
  CHECK(chart.series[2].name == "b");
}

TEST_CASE("kinds of charts have names", "[fast]") {
  Chart chart;
  CHECK(json_of(chart_row(chart))["kind"] == "line");
  chart.kind = Chart::Kind::bars;
  CHECK(json_of(chart_row(chart))["kind"] == "bars");
  CHECK(json_of(chart_row(chart))["series"] == Json::array());
}

}  // namespace experiment_file_test
