// Ghost BN from settings to conclusion.
#include <cmath>
#include <string>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::ghost_bn_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("ghost-bn: statistics follow the closed forms, workers the ghost batches", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      experiments::testing::smoke_run("ghost-bn", folder,
                                      {"sizes=8,32", "samples=100000", "batch=8", "large=32",
                                       "train_samples=64", "eval_samples=20", "steps=8"});
  const Conclusion conclusion = find_experiment("ghost-bn").run(run);
  CHECK(held(conclusion, "statistics") == std::pair(6, 6));
  CHECK(held(conclusion, "workers") == std::pair(2, 2));
  CHECK(conclusion.tables.size() == 3);
  CHECK(conclusion.charts.size() == 3);
  // Batches that learn less than small ones show no test of generalisation.
  const auto& rows = conclusion.tables[2].rows;
  const bool apart = std::fabs(std::stod(rows[0][2]) - std::stod(rows[1][2])) > 0.05;
  int of_training = 0, laws = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    if (finding.claim == "logarithm" || finding.claim == "power") {
      ++laws;
      CHECK_THAT(finding.what, Catch::Contains("updates 1 to 8: share of the variance"));
    }
    if (finding.claim != "gap" && finding.claim != "ghosts" && finding.claim != "updates" &&
        finding.claim != "adaptation")
      continue;
    ++of_training;
    CHECK((finding.verdict == Verdict::none) == apart);
    CHECK((finding.what.find("no test of generalisation") != std::string::npos) == apart);
  }
  CHECK(of_training == 4);
  CHECK(laws == 4);
}

TEST_CASE("ghost-bn: a large batch is a multiple", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "ghost-bn", folder, {"sizes=8", "samples=1000", "batch=12", "large=32"});
  CHECK_THROWS_WITH(find_experiment("ghost-bn").run(run),
                    Catch::Contains("large: expected a multiple of batch = 12, not 32"));
}

}  // namespace numemu::ghost_bn_test
