// ScaleCom from settings to conclusion: drawn workers beside the closed forms.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::scalecom_experiment_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("scalecom: drawn workers follow the closed forms", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "scalecom", folder,
      {"correlations=0,0.9", "noise_workers=4", "elements=40000", "repeats=6", "nets=-"});
  const Conclusion conclusion = find_experiment("scalecom").run(run);
  CHECK(held(conclusion, "contraction") == std::pair(6, 6));
  CHECK(held(conclusion, "union") == std::pair(2, 2));
  CHECK(conclusion.tables.size() == 1 + 2);  // two of the figure on paper
  CHECK(conclusion.charts.size() == 2 + 1);
}

}  // namespace numemu::scalecom_experiment_test
