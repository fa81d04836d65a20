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

TEST_CASE("bits and chains that are not there are named", "[fast]") {
  const TemporaryFolder folder;
  const auto fails = [&](const std::string& setting, const std::string& with) {
    CHECK_THROWS_WITH(find_experiment("post-training").run(run_of(folder, {setting})),
                      Catch::Contains(with));
  };
  fails("chains=batchnorm", "--set: chains: unknown tuning step 'batchnorm'");
  fails("bits=w4a", "w4a");
}
