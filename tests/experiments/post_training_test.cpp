// Chains of tuning steps beside plain rounding, on a small network.
#include "experiments/engine/claims.hpp"
#include "experiments/engine/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun run_of(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  testing::write_click_network(folder / "n.safetensors");
  std::vector<std::string> overrides = {"net=" + (folder / "n.safetensors"), "data=clicks",
                                        "images=40", "samples=32"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::smoke_run("post-training", folder, overrides);
}

}  // namespace

TEST_CASE("every bit width is rounded plainly and after each chain", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const Conclusion found =
      experiment.run(run_of(folder, {"bits=w8a8,w4a4,mxfp4", "chains=bias_correction"}));
  REQUIRE(found.tables.size() == 1);
  const ResultTable& table = found.tables[0];
  REQUIRE(table.rows.size() == 6);
  CHECK(table.rows[0][0] == "w8a8");
  CHECK(table.rows[0][1] == "naive");
  CHECK(table.rows[3][1] == "bias_correction");
  const auto claims = claim_results(experiment.claims, found.findings);
  REQUIRE(claims.size() == 2);
  CHECK(found.findings.size() == 4);  // a gain for each width, and w4a4 beside float32
  // Plain rounding minus itself is 0, and the second run reads what the first one stored.
  const Conclusion again =
      experiment.run(run_of(folder, {"bits=w8a8,w4a4,mxfp4", "chains=bias_correction"}));
  CHECK(again.tables[0].rows == table.rows);
}

TEST_CASE("pipelines, recipe files and formats of the ends are rounded, too", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const std::string file = folder / "r.json";
  numemu::test::write_file(file,
                           R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int3"}}})");
  const auto tops = [&](const std::vector<std::string>& settings) {
    std::vector<std::string> all;
    const Conclusion found = experiment.run(run_of(folder, settings));
    for (const auto& row : found.tables.at(0).rows) all.push_back(row[2] + " " + row[5]);
    return all;
  };
  // A pipeline is its steps, on blocks too; weights alone are another recipe than both at 3 bits.
  const auto named = tops({"bits=w3a3,mxfp4," + file, "chains=light"}),
             steps = tops({"bits=w3a3,mxfp4", "chains=calibrate(percentile(99.9))+batch_norm"}),
             ends = tops({"bits=w3a3", "chains=light", "ends=int8"});
  REQUIRE(named.size() == 6);
  CHECK(std::vector<std::string>(named.begin(), named.begin() + 4) == steps);
  CHECK(named[4] != named[0]);
  CHECK(ends[0] != named[0]);
}

TEST_CASE("formats of the ends count behind the layers of a stage", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const std::string layers =
                        R"("layers": [{"match": "*", "roles": {"weight": {"format": "int2"}}}])",
                    head = R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int3"}})";
  const auto tops = [&](const std::string& recipe, const std::string& ends) {
    numemu::test::write_file(folder / "r.json", recipe);
    const auto found = experiment.run(
        run_of(folder, {"bits=" + (folder / "r.json"), "chains=naive", "ends=" + ends}));
    return found.tables.at(0).rows.at(0);
  };
  const std::string staged =
      head + R"(, "stages": [{"from": {"epoch": 1}, "patch": {)" + layers + "}}]}";
  CHECK(tops(staged, "int8") == tops(head + ", " + layers + "}", "int8"));
  CHECK(tops(staged, "int8") != tops(staged, "same"));
}

TEST_CASE("plain rounding comes first, wherever the chains name it", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const auto rows = [&](const std::string& chains) {
    return experiment.run(run_of(folder, {"bits=w4a4", chains})).tables.at(0).rows;
  };
  const auto last = rows("chains=light,naive");
  REQUIRE(last.size() == 2);
  CHECK(last[0][1] == "naive");
  CHECK(last == rows("chains=light"));
}

TEST_CASE("findings name the format of the ends", "[fast]") {
  const TemporaryFolder folder;
  const Experiment& experiment = find_experiment("post-training");
  const auto findings =
      experiment.run(run_of(folder, {"bits=w4a4", "chains=light", "ends=int8"})).findings;
  REQUIRE(findings.size() == 2);
  for (const Finding& finding : findings)
    CHECK_THAT(finding.what, Catch::StartsWith("top-1 of w4a4, first and last layer int8, after"));
}

TEST_CASE("bits and chains that are not there are named", "[fast]") {
  const TemporaryFolder folder;
  const auto fails = [&](const std::string& setting, const std::string& with) {
    CHECK_THROWS_WITH(find_experiment("post-training").run(run_of(folder, {setting})),
                      Catch::Contains(with));
  };
  fails("chains=batchnorm", "--set: chains: unknown tuning step 'batchnorm'");
  fails("bits=w4a", "w4a");
}
