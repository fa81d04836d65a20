// Charts as JSON: every field, and null or absence where a number is not finite.
#include "experiments/engine/experiment_file.hpp"

#include <cmath>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace experiment_file_test {

using namespace numemu::experiments;
using numemu::Json, numemu::json_of, numemu::Verdict;

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
  CHECK(json_of(chart) == Json::parse(R"({
    "kind": "points", "title": "Error over share", "caption": "rne",
    "x": "share kept", "y": "NSR", "log_x": false, "log_y": true,
    "series": [
      {"name": "measured", "predicted": false,
       "points": [{"name": "2:4", "x": 0.5, "y": 0.1, "ci95": [0.09, 0.11]}]},
      {"name": "predicted", "predicted": true,
       "points": [{"x": 0.5, "y": 0.1}, {"x": 1.0, "y": null}]}]})"));
}

TEST_CASE("charts and findings are read as they were written, parts that are missing as nothing",
          "[fast]") {
  ExperimentFile file;
  file.findings = {{"known", 1, 2, 1.5, 2.5, Verdict::holds, true, "it", NAN, 0.5},
                   {"unknown", NAN, HUGE_VAL, -HUGE_VAL, NAN, Verdict::none}};
  file.charts = {{.kind = Chart::Kind::bars, .series = {{"s", {{.name = "a", .y = NAN}}}}}};
  const Json json = json_of(file);
  const ExperimentFile again = read_experiment(json);
  CHECK(json_of(again) == json);
  CHECK(half_width(again.findings[0]) == 0.5);
  CHECK(std::isnan(again.findings[1].measured));
  CHECK(json["findings"][1] ==
        Json::parse(R"({"what": "unknown", "predicted": null, "measured": null,
                        "ci95": [null, null], "verdict": null})"));
  const ExperimentFile empty = read_experiment(Json::parse(
      R"({"findings": [{}], "claims": [{}], "charts": [{"series": [{"points": [{}]}]}]})"));
  CHECK(std::isnan(empty.findings.at(0).predicted));
  CHECK(empty.findings[0].verdict == Verdict::none);
  CHECK(empty.claims.at(0).verdict == Verdict::none);
  CHECK_FALSE(empty.claims[0].worst);
  CHECK(empty.charts.at(0).kind == Chart::Kind::line);
  CHECK(std::isnan(empty.charts[0].series.at(0).points.at(0).x));
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
  CHECK(json_of(chart)["kind"] == "line");
  chart.kind = Chart::Kind::bars;
  CHECK(json_of(chart)["kind"] == "bars");
  CHECK(json_of(chart)["series"] == Json::array());
}

}  // namespace experiment_file_test
