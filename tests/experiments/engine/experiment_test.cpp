// Experiments: the table, what all their settings take, the JSON.
#include "experiments/engine/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace experiment_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using Texts = std::vector<std::string>;

namespace {

const SettingList kSettings = {{"images", "5", "50", "500", "test samples"},
                               {"formats", "int4", "int4,int8", "int4", "formats"}};

}  // namespace

TEST_CASE("experiments have names of their own and settings for every size", "[fast]") {
  std::set<std::string> names;
  REQUIRE_FALSE(all_experiments().empty());
  for (const Experiment* experiment : all_experiments()) {
    CHECK(names.insert(experiment->name).second);
    CHECK(&find_experiment(experiment->name) == experiment);
    CHECK(std::string(experiment->question).size() > 10);
    CHECK(std::string(experiment->question).back() != '?');  // the report asks
    CHECK(std::string(experiment->source).back() == '.');
    CHECK_FALSE(experiment->claims.empty());
    std::set<std::string> claims;
    for (const Claim& claim : experiment->claims) CHECK(claims.insert(claim.key).second);
    std::set<std::string> keys;
    for (const Setting& setting : experiment->settings) {
      CHECK(keys.insert(setting.key).second);
      for (const char* text : {setting.smoke, setting.standard, setting.full})
        REQUIRE(text != nullptr);
    }
  }
  CHECK_THAT(message_of([] { find_experiment("sensitivty"); }),
             Catch::Contains("did you mean 'sensitivity'"));
}

TEST_CASE("docs/experiments.md lists every experiment", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/experiments.md");
  for (const Experiment* experiment : all_experiments()) {
    const std::string name = experiment->name;
    CHECK_THAT(page, Catch::Contains(fmt::format("\n| [{}](experiments/{}.md) | ", name, name)));
  }
}

TEST_CASE("what the smallest size cannot show gets no verdict there", "[fast]") {
  for (const Experiment* experiment : all_experiments()) {
    for (const Claim& claim : experiment->claims) {
      if (claim.needs == nullptr) continue;
      INFO(experiment->name << ": " << claim.key);
      const auto needed =
          std::ranges::find(experiment->settings, std::string_view(claim.needs),
                            [](const Setting& setting) { return std::string_view(setting.key); });
      REQUIRE(needed != experiment->settings.end());
      CHECK(std::string_view(needed->smoke) != needed->full);
    }
  }
  const Experiment& novograd = find_experiment("novograd");
  Conclusion conclusion;
  for (const char* claim : {"accuracy", "state"})
    conclusion.add(exact_finding(claim, 0, 0, true), claim);
  const numemu::test::TemporaryFolder folder;
  const auto verdicts = [&](const Texts& overrides) {
    const ExperimentFile file =
        file_of(novograd, testing::smoke_run("novograd", folder, overrides), conclusion);
    return std::pair(file.findings[0].verdict, file.findings[1].verdict);
  };
  CHECK(verdicts({}) == std::pair(Verdict::none, Verdict::holds));
  CHECK(verdicts({"seeds=5"}) == std::pair(Verdict::holds, Verdict::holds));
}

TEST_CASE("every setting says what it takes, and its defaults are taken", "[fast]") {
  const auto is_number = [](const std::string& text) {
    return text.find_first_not_of("0123456789.eE+-") == std::string::npos &&
           text.find_first_of("0123456789") != std::string::npos;
  };
  for (const Experiment* experiment : all_experiments()) {
    for (const Size size : {Size::smoke, Size::standard, Size::full})
      CHECK_NOTHROW(settings_of(*experiment, size, {}));
    for (const Setting& setting : experiment->settings) {
      INFO(experiment->name << ": " << setting.key);
      const std::string full = setting.full;
      const bool numbers = is_number(full.substr(0, full.find(',')));
      const Takes& takes = setting.takes;
      if (!numbers) {
        CHECK((takes.kind == Takes::Kind::text || takes.empty));
        continue;
      }
      CHECK((takes.kind != Takes::Kind::text || takes.check != nullptr));
      for (const char* absurd : {"-1e300", "1e300", "nan", "x", "7,", "0x10"}) {
        const std::string message = message_of([&] {
          settings_of(*experiment, Size::smoke, {std::string(setting.key) + "=" + absurd});
        });
        CHECK_THAT(message, Catch::StartsWith("--set: " + std::string(setting.key) + ": "));
        CHECK(message.find('\n') == std::string::npos);
      }
    }
  }
}

TEST_CASE("a list has each value once", "[fast]") {
  const std::vector<Setting> settings = {{"counts", "1,2", "1", "1", "", wholes(1, 9)},
                                         {"shares", "0.5", "1", "1", "", reals(0, 1)},
                                         {"rules", "a,f(1,1)", "a", "a", "", list_of()}};
  const auto message = [&](const std::string& assignment) {
    return message_of([&] { Settings(settings, Size::smoke, {assignment}); });
  };
  CHECK(message("counts=3,4").empty());
  CHECK(message("counts=3,4,3") == "--set: counts: expected each value once, found 3 twice");
  CHECK(message("shares=0.5,1,5e-1") == "--set: shares: expected each value once, found 0.5 twice");
  CHECK(message("rules=f(1,1),f(1, 1)") ==
        "--set: rules: expected each value once, found f(1,1) twice");
  for (const Experiment* experiment : all_experiments()) {
    for (const Setting& setting : experiment->settings) {
      if (!setting.takes.list || std::string(setting.smoke).empty()) continue;
      const std::string twice = std::string(setting.smoke) + "," + setting.smoke;
      INFO(experiment->name << ": " << setting.key);
      CHECK_THAT(
          message_of([&] { settings_of(*experiment, Size::smoke, {setting.key + ("=" + twice)}); }),
          Catch::Contains("expected each value once"));
    }
  }
}

TEST_CASE("settings of experiments about workers are refused at once", "[fast]") {
  const auto refused = [&](const char* name, const std::string& setting) {
    return message_of([&] { settings_of(find_experiment(name), Size::smoke, {setting}); });
  };
  for (const char* name : {"adacomp", "scalecom", "birder", "learned-compression", "exchange-cost"})
    CHECK(refused(name, "link_node=12") == "--set: link_node: expected a power of two, not 12");
  CHECK_THAT(refused("exchange-cost", "formats=int99"), Catch::StartsWith("--set: formats: "));
  CHECK_THAT(refused("birder", "link_inside=1"), Catch::Contains("as in 5e-6,12.5e9, not '1'"));
  CHECK_THAT(refused("birder", "beta=1"), Catch::Contains("expected a number in 0 to 0.999999"));
  CHECK_THAT(refused("mlperf", "seconds=1000000"), Catch::Contains("fewer seconds"));
  CHECK_THAT(refused("mlperf", "gates=auc>=0.5*float32"), Catch::Contains("float32's top-1"));
  CHECK_THAT(refused("mlperf", "nets=lenett"), Catch::Contains("did you mean 'lenet'"));
  CHECK_THAT(refused("dropcompute", "nets=mlpp"), Catch::Contains("did you mean 'mlp'"));
  CHECK_THAT(refused("dropcompute", "workers=5"), Catch::Contains("such as 180 or 240, not 192"));
}

TEST_CASE("an answer as JSON has null for what is not finite", "[fast]") {
  ExperimentRun run{.settings = Settings(kSettings, Size::smoke, {"images=3"}),
                    .seed = 4,
                    .out = "",
                    .folders = {},
                    .hooks = {}};
  Conclusion conclusion;
  conclusion.sentences = {"so it is"};
  conclusion.tables = {{"t", {"a", "b"}, {{"1", "2"}}}};
  conclusion.add(std::vector<Finding>{{"x", 1.5, HUGE_VAL, -HUGE_VAL, std::nan(""), Verdict::fails},
                                      {"y", 1, 1, 1, 1, Verdict::holds, /*self_check=*/true}},
                 "it");
  conclusion.charts = {{.title = "c", .series = {{.name = "s", .points = {{.x = 1, .y = 2}}}}}};
  const Experiment experiment{"name",    "a question", "X claims it.", {{"it", "It is."}},
                              kSettings, nullptr};
  const auto json = json_of(file_of(experiment, run, conclusion));
  CHECK(json["numemu_experiment"] == 1);
  CHECK(json["name"] == "name");
  CHECK(json["seed"] == 4);
  CHECK(json["settings"]["images"] == "3");
  CHECK(json["settings"]["formats"] == "int4");
  CHECK(json["sentences"] == Texts{"so it is"});
  CHECK(json["tables"][0]["title"] == "t");
  CHECK(json["tables"][0]["header"] == Texts{"a", "b"});
  CHECK(json["tables"][0]["rows"][0] == Texts{"1", "2"});
  CHECK(json["findings"][0]["predicted"] == 1.5);
  CHECK(json["findings"][0]["measured"].is_null());
  CHECK(json["findings"][0]["ci95"][0].is_null());
  CHECK(json["findings"][0]["ci95"][1].is_null());
  CHECK(json["findings"][0]["verdict"] == "fails");
  CHECK(json["findings"][0]["claim"] == "it");
  CHECK_FALSE(json["findings"][0].contains("self_check"));
  CHECK(json["findings"][1]["self_check"] == true);
  CHECK(json["question"] == "a question");
  CHECK(json["source"] == "X claims it.");
  REQUIRE(json["claims"].size() == 1);
  CHECK(json["claims"][0]["claim"] == "It is.");
  CHECK(json["claims"][0]["verdict"] == "fails");
  CHECK(json["claims"][0]["holds"] == 0);  // the self-check is none of it
  CHECK(json["claims"][0]["worst"]["what"] == "x");
  CHECK(json["charts"][0]["title"] == "c");
  CHECK(json["charts"][0]["series"][0]["points"][0]["y"] == 2);
}

TEST_CASE("a claim that the smallest size cannot show gets no verdict there", "[fast]") {
  const Experiment experiment{"name",    "a question",
                              "X.",      {{"it", "It is.", "images"}, {"own", "It is, too."}},
                              kSettings, nullptr};
  const auto verdict_at = [&](Size size, std::size_t claim) {
    const ExperimentRun run{
        .settings = Settings(kSettings, size, {}), .out = "", .folders = {}, .hooks = {}};
    Conclusion conclusion;
    for (const char* key : {"it", "own"}) conclusion.add(exact_finding("x", 1, 1, true), key);
    return file_of(experiment, run, conclusion).claims.at(claim).verdict;
  };
  CHECK(verdict_at(Size::smoke, 0) == Verdict::none);
  CHECK(verdict_at(Size::smoke, 1) == Verdict::holds);
  CHECK(verdict_at(Size::standard, 0) == Verdict::holds);
}

namespace {

Finding finding(const char* what, const char* claim, double measured, Verdict verdict) {
  return {what, 1, measured, measured, measured, verdict, /*self_check=*/false, claim};
}

}  // namespace

TEST_CASE("a claim holds with all of its findings and fails with any", "[fast]") {
  const std::vector<Claim> claims = {{"a", "A."}, {"b", "B."}, {"c", "C."}};
  std::vector<Finding> findings = {finding("near", "a", 1.01, Verdict::holds),
                                   finding("far", "a", 1.2, Verdict::holds),
                                   finding("undecided", "b", 1.9, Verdict::undecided),
                                   finding("fails little", "b", 1.5, Verdict::fails),
                                   finding("fails most", "b", 1.6, Verdict::fails),
                                   finding("holds", "b", 1, Verdict::holds)};
  findings.push_back(finding("own sum", "", 2, Verdict::fails));
  findings.back().self_check = true;
  const std::vector<ClaimResult> results = claim_results(claims, findings);
  REQUIRE(results.size() == 3);
  CHECK(results[0].found.verdict() == Verdict::holds);
  CHECK(results[0].found.compared() == 2);
  CHECK(results[0].worst->what == "far");
  CHECK(results[1].found.verdict() == Verdict::fails);
  CHECK(results[1].found.fails == 2);
  CHECK(results[1].found.undecided == 1);
  CHECK(results[1].worst->what == "fails most");
  CHECK(results[2].worst == nullptr);
  CHECK(results[2].found.verdict() == Verdict::none);
}

TEST_CASE("a finding about no claim is an error", "[fast]") {
  CHECK_THAT(message_of([] {
               claim_results({{"a", "A."}}, {finding("lost", "b", 1, Verdict::holds)});
             }),
             Catch::Contains("'lost'") && Catch::Contains("'b'"));
}

}  // namespace experiment_test
