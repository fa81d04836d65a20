// Charts of experiment.json: what can be drawn is kept, ready for its axes; any shape is tolerated.
#include "experiments/report/experiment_charts.hpp"

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

using namespace numemu::experiments;
using numemu::Json;

namespace {

Json charts_of(const Json& charts) {
  const Json experiment = {{"charts", charts}};
  return experiment_charts(&experiment);
}

Json one(const char* kind, bool log, const Json& points) {
  const Json ready = charts_of(Json::array(
      {sample::chart(kind, "T", log, Json::array({sample::series("s", false, points)}))}));
  return ready.empty() ? Json::array() : ready[0]["records"];
}

}  // namespace

TEST_CASE("a chart is flattened to records", "[fast]") {
  const Json ready = charts_of(Json::array({sample::chart(
      "points", "T", false,
      {sample::series("measured", false, Json::array({sample::chart_point(1, "a", 2, 0.5)})),
       sample::series("predicted", true, Json::array({sample::chart_point(1, "", 2.5, 0)}))})}));
  CHECK(ready == Json::parse(R"([{
    "kind": "points", "title": "T", "caption": "Made up for tests.", "x": "share kept",
    "y": "noise to signal", "log_x": false, "log_y": false,
    "series": [{"name": "measured", "predicted": false, "colour": 0, "group": "measured"},
               {"name": "predicted", "predicted": true, "colour": 0, "group": "measured"}],
    "records": [
      {"series": "measured", "predicted": false, "name": "a", "x": 1.0, "y": 2.0, "low": 1.5,
       "high": 2.5, "dense": false},
      {"series": "predicted", "predicted": true, "name": "", "x": 1.0, "y": 2.5, "low": null,
       "high": null, "dense": false}]}])"));
}

TEST_CASE("points that an axis cannot show are left out", "[fast]") {
  const Json points = Json::parse(R"([
    {"x": 0, "y": 1}, {"x": 1, "y": 0}, {"x": 2, "y": 3, "ci95": [-1, 4]},
    {"x": 3, "y": null}, {"x": null, "y": 2}, {"x": 4, "y": 5, "ci95": [4, null]}])");
  const auto ys = [](const Json& records) {
    std::vector<double> values;
    for (const Json& record : records) values.push_back(record["y"]);
    return values;
  };
  CHECK(ys(one("line", false, points)) == std::vector<double>{1, 0, 3, 5});
  CHECK(ys(one("bars", false, points)) == std::vector<double>{1, 0, 3, 2, 5});
  const Json log = one("line", true, points);
  CHECK(ys(log) == std::vector<double>{3, 5});
  CHECK(log[0]["low"] == 3.0);  // the smallest number drawn stands for what lies below the axis
  CHECK(log[0]["high"] == 4);
  CHECK(log[1]["low"].is_null());
  CHECK(one("line", false, points)[2]["low"] == -1);
  CHECK(one("line", true, Json::parse(R"([{"x": 1, "y": -1}])")).empty());
}

TEST_CASE("long series are dense", "[fast]") {
  Json points = Json::array();
  for (int i = 1; i <= 13; ++i) points.push_back(sample::chart_point(i, "", i, 0.1));
  CHECK(one("line", false, points)[0]["dense"] == true);
  points.erase(12);
  CHECK(one("line", false, points)[0]["dense"] == false);
}

TEST_CASE("a prediction has the colour of what it predicts", "[fast]") {
  Json list = Json::array();
  for (const char* name : {"conv1, measured", "conv1, predicted", "fc1 (measured)", "predicted fc1",
                           "conv1", "measured"})
    list.push_back(sample::series(name, false, Json::array({sample::chart_point(1, "", 1, 0)})));
  const Json ready = charts_of(Json::array({sample::chart("line", "T", false, list)}));
  std::vector<int> colours;
  std::vector<std::string> groups;
  for (const Json& series : ready[0]["series"]) {
    colours.push_back(series["colour"]);
    groups.push_back(series["group"]);
  }
  CHECK(colours == std::vector{0, 0, 1, 1, 0, 2});
  CHECK(groups == std::vector<std::string>{"conv1", "conv1", "fc1", "fc1", "conv1", "measured"});
}

TEST_CASE("files of any shape give what can be read of them", "[fast]") {
  CHECK(experiment_charts(nullptr).empty());
  for (const char* text : {"null", "[]", "{}", R"({"charts": 3})", R"({"charts": [1, null, {}]})",
                           R"({"charts": [{"series": [2, {"points": [1, "x", {"x": "1"}]}]}]})"}) {
    const Json experiment = Json::parse(text);
    CHECK(experiment_charts(&experiment).empty());
  }
  const Json odd = charts_of(Json::parse(
      R"([{"kind": "pie", "title": 5, "series": [{"points": [{"x": 1, "y": 1, "ci95": [1]}]}]}])"));
  REQUIRE(odd.size() == 1);
  CHECK(odd[0]["kind"] == "line");
  CHECK(odd[0]["records"][0]["low"].is_null());
}

TEST_CASE("figures are numbered and their words are text", "[fast]") {
  CHECK(experiment_figures(Json::array()).empty());
  const Json experiment = sample::poisoned(sample::experiment());
  const std::string html = experiment_figures(experiment_charts(&experiment));
  for (int i = 1; i <= 5; ++i) {
    const std::string figure = "<figure id=\"fig-e" + std::to_string(i) +
                               "\"><div class=\"plot\" data-chart=\"experiment\" data-number=\"" +
                               std::to_string(i - 1);
    CHECK(html.find(figure) != html.npos);
    CHECK(html.find("Figure E" + std::to_string(i) + ". ") != html.npos);
  }
  CHECK(html.find("<script") == html.npos);
  CHECK(html.find("<img") == html.npos);
}
