// The section of an experiment: verdicts counted, text escaped, any shape of file tolerated.
#include "experiments/report/html.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

using namespace numemu::experiments;
using Json = nlohmann::ordered_json;

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
  CHECK(count(mixed, "with mxfp4 in fc1") == 2);
  CHECK(count(mixed, "with mxfp4 in conv2") == 1);
  CHECK(count(mixed, "<details>") == 2);  // all findings, settings
  experiment["findings"][1]["verdict"] = "holds";
  const std::string held = experiment_section(&experiment);
  CHECK(count(held, "with mxfp4 in fc1") == 1);
  CHECK(count(held, "Of 2 predictions, 2 hold, 0 are undecided, 0 fail.") == 1);
  CHECK(count(held, "<details open>") == 1);
  CHECK(count(held, "[14, 14.2]") == 1);
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
  const std::string section = experiment_section(&experiment, "FIGURES");
  CHECK(count(section, "FIGURES") == 1);
  CHECK(section.find("int4: fc1 is.") < section.find("FIGURES"));
  CHECK(section.find("FIGURES") < section.find("Findings"));
  CHECK(section.find("the most sensitive layer first") < section.find("<summary>Settings"));
  CHECK(count(section, "<td>net</td><td>lenet</td>") == 1);
}

TEST_CASE("hostile words of an experiment stay text", "[fast]") {
  const Json hostile = sample::poisoned(sample::experiment());
  const std::string section = experiment_section(&hostile);
  CHECK(count(section, "<script") == 0);
  CHECK(count(section, "<img") == 0);
  CHECK(count(section, "&lt;script&gt;window.hacked=1") > 5);
}
