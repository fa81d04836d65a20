// Learned compression from settings to conclusion: normal workers beside the formulas.
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::learned_compression_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("learned-compression: normal workers follow the formulas", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "learned-compression", folder,
      {"correlations=0.5,0.9", "elements=50000", "repeats=4", "nets=-", "net=-"});
  const Conclusion conclusion = find_experiment("learned-compression").run(run);
  for (const char* const claim : {"information", "mean", "component", "autoencoder"}) {
    INFO(claim);
    CHECK(held(conclusion, claim) == std::pair(2, 2));
  }
}

}  // namespace numemu::learned_compression_test
