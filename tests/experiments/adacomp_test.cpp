// AdaComp from settings to conclusion: noise beside its laws, small networks.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::adacomp_experiment_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("adacomp: noise follows its laws", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "adacomp", folder,
      {"bins=50", "elements=20000", "warm=60", "steps=20", "repeats=3", "nets=-"});
  const Conclusion conclusion = find_experiment("adacomp").run(run);
  CHECK(held(conclusion, "first") == std::pair(1, 1));
  CHECK(held(conclusion, "noise") == std::pair(1, 1));
  CHECK(held(conclusion, "mean field") == std::pair(2, 2));
  CHECK(held(conclusion, "headline") == std::pair(1, 1));
  REQUIRE(conclusion.findings.back().self_check);
  CHECK(conclusion.findings.back().verdict == Verdict::holds);
  CHECK(conclusion.tables.size() == 1 + 2);  // two of the figure on paper
  CHECK(conclusion.charts.size() == 1 + 1);
}

}  // namespace numemu::adacomp_experiment_test
