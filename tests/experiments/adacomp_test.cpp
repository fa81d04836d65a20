// AdaComp from settings to conclusion: noise beside its laws, small networks.
#include <vector>

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

TEST_CASE("adacomp: about a published rate is four fifths of it or more, and few bins have no verdict", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "adacomp", folder,
      {"bins=50", "elements=20000", "warm=10", "steps=5", "repeats=2", "nets=mobilenet-small",
       "train_samples=8", "eval_samples=4", "batch=4"});
  const Conclusion conclusion = find_experiment("adacomp").run(run);
  std::vector<Finding> published;
  for (const Finding& finding : conclusion.findings)
    if (finding.claim == "published") published.push_back(finding);
  REQUIRE(published.size() == 2);
  CHECK(published[0].what ==
        "mobilenet-small, sgd: compression of convolutions, about 40 (at least 32)");
  CHECK(is_judged(published[0].verdict));
  // Its one matrix has 10 x 128 elements.
  CHECK(published[1].what ==
        "mobilenet-small, sgd: compression of matrices, about 200 (at least 160); no verdict: 1280 "
        "elements, 2.6 bins");
  CHECK(published[1].verdict == Verdict::none);
}

}  // namespace numemu::adacomp_experiment_test
