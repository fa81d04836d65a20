// The section of an experiment, and its charts.
#include "experiments/report/html.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

namespace html_experiment_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("no experiment gives no section", "[fast]") {
  CHECK(experiment_section(nullptr).empty());
  const Json list = Json::array();
  CHECK(experiment_section(&list).empty());
}

TEST_CASE("findings that do not hold stand first, all of them in the fold", "[fast]") {
  Json experiment = sample::experiment();
  const std::string mixed = experiment_section(&experiment);
  CHECK(count(mixed, "with mxfp4 in fc1") == 3);  // the claim's worst finding too
  CHECK(count(mixed, "with mxfp4 in conv2") == 1);
  CHECK(count(mixed, "<details>") == 3);  // all findings, self-checks, settings
  CHECK(count(mixed, "Of 2 predictions 1 holds, 1 fails.") == 1);
  experiment["findings"][1]["verdict"] = "holds";
  const std::string held = experiment_section(&experiment);
  CHECK(count(held, "with mxfp4 in fc1") == 2);
  CHECK(count(held, "Of 2 predictions 2 hold.") == 1);
  CHECK(count(held, "<details open>") == 1);
  CHECK(count(held, "[14, 14.2]") == 1);
}

TEST_CASE("the answer comes first: question, first figures, claims, figures, then the details",
          "[fast]") {
  const Json experiment = sample::experiment();
  const std::string section = experiment_section(&experiment, {"FIRST", "FIGURES"});
  std::size_t last = 0;
  for (const char* part :
       {"Which layer breaks first?", "<p class=\"answer\">Of 2 claims 1 fails, 1 is not tested",
        "FIRST", "Noises add up, it is claimed.", "All claims: 1 fails; this run did not test 1.",
        "Claimed</th>", "within 1 dB.<small>The worst of 2: output SQNR in dB with mxfp4 in fc1",
        "[15.5, 16.3]", "Gains are linear.", "not tested</td>", "FIGURES", "What was found",
        "mxfp4: conv2 is", "<h3>Findings", "the most sensitive layer first", "Self-checks",
        "noise of nothing", "<summary>Settings"}) {
    INFO(part);
    const std::size_t at = section.find(part, last);
    CHECK(at != section.npos);
    if (at != section.npos) last = at;
  }
  CHECK(count(section, "noise of nothing") == 1);
}

TEST_CASE("a file without claims is answered by its sentences", "[fast]") {
  Json experiment = sample::experiment();
  for (const char* key : {"question", "source", "claims"}) experiment.erase(key);
  const std::string section = experiment_section(&experiment, {"FIRST", "FIGURES"});
  CHECK(section.find("Experiment: sensitivity") < section.find("mxfp4: conv2 is"));
  CHECK(section.find("mxfp4: conv2 is") < section.find("FIGURES"));
  CHECK(count(section, "Claimed</th>") == 0);
  CHECK(count(section, "What was found") == 0);
}

TEST_CASE("an experiment without sentences has no heading for them", "[fast]") {
  Json experiment = sample::experiment();
  experiment["sentences"] = Json::array();
  const std::string section = experiment_section(&experiment, {"FIRST", "FIGURES"});
  CHECK(count(section, "What was found") == 0);
  CHECK(count(section, "Claimed</th>") == 1);
}

TEST_CASE("an experiment of any shape gives a section with closed tables", "[fast]") {
  const Json odd[] = {Json::object(),
                      {{"name", 3}, {"sentences", "no"}, {"findings", 1}, {"tables", nullptr}},
                      {{"findings", {nullptr, 2, {{"ci95", {1}}, {"predicted", "x"}}}},
                       {"tables", {5, {{"header", {1, "a"}}, {"rows", {3, {4, "b"}}}}}}}};
  for (const Json& experiment : odd) {
    const std::string section = experiment_section(&experiment);
    CHECK(count(section, "<table") == count(section, "</table>"));
    CHECK(count(section, "<section") == 1);
  }
}

TEST_CASE("figures stand before the findings, settings at the end", "[fast]") {
  const Json experiment = sample::experiment();
  const std::string section = experiment_section(&experiment, {"FIRST", "FIGURES"});
  CHECK(count(section, "FIGURES") == 1);
  CHECK(section.find("FIGURES") < section.find("int4: fc1 is."));
  CHECK(section.find("int4: fc1 is.") < section.find("<h3>Findings"));
  CHECK(section.find("the most sensitive layer first") < section.find("<summary>Settings"));
  CHECK(count(section, "<td>net</td><td>lenet</td>") == 1);
}

TEST_CASE("long words of a table may break behind their joints, short ones stay whole", "[fast]") {
  const Json experiment = {{"tables",
                            {{{"header", {"steps"}},
                              {"rows",
                               {{"calibrate(percentile(99.9))+adaquant(iterations=100,mode=<b>)"},
                                {"a+b, minus c"}}}}}}};
  const std::string section = experiment_section(&experiment);
  CHECK(count(section,
              "<td>calibrate(<wbr>percentile(<wbr>99.9))+<wbr>adaquant(<wbr>iterations=100,<wbr>"
              "mode=&lt;b&gt;)</td>") == 1);
  CHECK(count(section, "<td>a+b, minus c</td>") == 1);
}

TEST_CASE("hostile words of an experiment stay text", "[fast]") {
  const Json hostile = sample::poisoned(sample::experiment());
  const std::string section = experiment_section(&hostile);
  CHECK(count(section, "<script") == 0);
  CHECK(count(section, "<img") == 0);
  CHECK(count(section, "&lt;script&gt;window.hacked=1") > 5);
}

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

}  // namespace html_experiment_test
