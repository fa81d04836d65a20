// The section of an experiment: verdicts counted, text escaped, any shape of file tolerated.
#include "experiments/report/html.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

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

TEST_CASE("the answer comes first: question, claims, figures, then the details", "[fast]") {
  const Json experiment = sample::experiment();
  const std::string section = experiment_section(&experiment, "FIGURES");
  std::size_t last = 0;
  for (const char* part :
       {"Which layer breaks first?", "Noises add up, it is claimed.",
        "Claims: 1 fails; this run did not test 1.", "Claimed</th>",
        "within 1 dB.<small>The worst of 2: output SQNR in dB with mxfp4 in fc1", "[15.5, 16.3]",
        "Gains are linear.", "not tested</td>", "FIGURES", "What was found", "mxfp4: conv2 is",
        "<h3>Findings", "the most sensitive layer first", "Self-checks", "noise of nothing",
        "<summary>Settings"}) {
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
  const std::string section = experiment_section(&experiment, "FIGURES");
  CHECK(section.find("Experiment: sensitivity") < section.find("mxfp4: conv2 is"));
  CHECK(section.find("mxfp4: conv2 is") < section.find("FIGURES"));
  CHECK(count(section, "Claimed</th>") == 0);
  CHECK(count(section, "What was found") == 0);
}

TEST_CASE("an experiment without sentences has no heading for them", "[fast]") {
  Json experiment = sample::experiment();
  experiment["sentences"] = Json::array();
  const std::string section = experiment_section(&experiment, "FIGURES");
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
  const std::string section = experiment_section(&experiment, "FIGURES");
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
