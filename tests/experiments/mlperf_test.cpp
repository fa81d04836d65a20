#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/mlperf/scenarios.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace numemu::mlperf_test {
namespace {

using namespace numemu::experiments;
using test::message_of;
using test::TemporaryFolder;

std::map<std::string, int> findings_by_claim(const Conclusion& conclusion) {
  std::map<std::string, int> counts;
  for (const Finding& finding : conclusion.findings) ++counts[finding.claim];
  return counts;
}

/// With the recipes and weights that numemu ships.
ExperimentRun run_of(const TemporaryFolder& folder, const std::vector<std::string>& settings) {
  ExperimentRun run = testing::smoke_run("mlperf", folder, settings);
  run.folders.data = NUMEMU_SOURCE "/data";
  return run;
}

}  // namespace

TEST_CASE("mlperf: scenarios follow the closed forms, and resume", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = run_of(folder, {"runs=3"});
  Conclusion conclusion;
  mlperf::add_scenarios(run, conclusion);
  const std::map<std::string, int> counts = findings_by_claim(conclusion);
  CHECK(counts.at("scenarios") == 2 * 3);
  CHECK(counts.at("server") == 2 * 3);
  CHECK(counts.at("speed") == 2);
  CHECK(counts.at("queue") == 1);
  CHECK(counts.at("few") == 1);  // whatever the laws, their uniform numbers are the same
  CHECK(counts.at("dependent") == 1);
  CHECK(counts.at("dependent, predicted") == 1);
  for (const char* const claim : {"scenarios", "server", "speed"}) {
    const auto [of, holds] = testing::held(conclusion, claim);
    INFO(claim);
    CHECK(of == counts.at(claim));
  }
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows[3][3] == "270336");
  Conclusion again;
  mlperf::add_scenarios(run_of(folder, {"runs=3"}), again);
  CHECK(again.tables[1].rows == conclusion.tables[1].rows);
}

TEST_CASE("mlperf: gates of shipped recipes", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = run_of(folder, {"eval_samples=200"});
  Conclusion conclusion;
  mlperf::add_gates(run, conclusion);
  CHECK(findings_by_claim(conclusion).at("eight bits") == 1);  // not the recipe of 4 bits
  REQUIRE(conclusion.tables.size() == 2);
  REQUIRE(conclusion.tables[0].rows.size() == 2);
  CHECK(conclusion.tables[0].rows[0][1] == "int8-static");
  CHECK(conclusion.sentences.size() == 2);
}

TEST_CASE("mlperf: bad settings are refused by name", "[fast]") {
  const TemporaryFolder folder;
  CHECK(message_of([&] { run_of(folder, {"bound=0.0001"}); }) ==
        "--set: bound: expected more than the 0.0001 seconds that exponential(1000) takes for "
        "nearly all samples");
  CHECK(message_of([&] { run_of(folder, {"gates=auc>=0.5*float32"}); }) ==
        "--set: gates: expected shares of float32's top-1, not 'auc>=0.5*float32'");
  CHECK_THAT(
      message_of([&] { find_experiment("mlperf").run(run_of(folder, {"recipes=int8-statik"})); }),
      Catch::Contains("int8-static"));
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace numemu::mlperf_test
