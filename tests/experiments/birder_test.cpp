// Birder from settings to conclusion: the noise of its signs beside the closed forms.
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::birder_experiment_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("birder: the noise of signs follows the closed forms", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "birder", folder, {"noise_workers=1,8", "elements=4000", "repeats=6", "nets=-"});
  const Conclusion conclusion = find_experiment("birder").run(run);
  for (const char* const claim : {"bound", "one stage", "two stages", "bits"}) {
    INFO(claim);
    CHECK(held(conclusion, claim) == std::pair(2, 2));
  }
}

TEST_CASE("birder: one worker alone is refused", "[fast]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(experiments::testing::smoke_run("birder", folder, {"workers=1"}),
                    Catch::Contains("workers: expected a whole number in 2 to 1024"));
}

}  // namespace numemu::birder_experiment_test
