// Birder from settings to conclusion: the noise of its signs beside the closed forms.
#include <algorithm>
#include <string>

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
  for (const char* const claim : {"bound", "one stage", "two stages"}) {
    INFO(claim);
    CHECK(held(conclusion, claim) == std::pair(2, 2));
  }
  CHECK(held(conclusion, "bits") == std::pair(1, 1));  // of 8 workers: one alone sends nothing
}

TEST_CASE("birder: only what is compared with Adam is the published claim", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "birder", folder,
      {"noise_workers=1", "elements=1600", "repeats=2", "optimizers=adam,sgd", "train_samples=64",
       "eval_samples=20", "batch=32"});
  const Conclusion conclusion = find_experiment("birder").run(run);
  CHECK(held(conclusion, "bits").first == 0);
  const auto compared_with = [&](const std::string& claim, const char* optimizer) {
    return std::ranges::count_if(conclusion.findings, [&](const Finding& finding) {
      return finding.claim == claim && finding.what.starts_with(optimizer);
    });
  };
  CHECK(compared_with("accuracy", "mlp, adam: ") == 1);
  CHECK(compared_with("accuracy", "mlp, sgd: ") == 0);
  CHECK(compared_with("other optimizers", "mlp, sgd: ") == 1);
}

TEST_CASE("birder: one worker alone is refused", "[fast]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(experiments::testing::smoke_run("birder", folder, {"workers=1"}),
                    Catch::Contains("workers: expected a whole number in 2 to 1024"));
}

}  // namespace numemu::birder_experiment_test
