// TracIn from settings to conclusion.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::tracin_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

TEST_CASE("tracin: closed forms hold", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = experiments::testing::smoke_run(
      "tracin", folder,
      {"formats=int4", "train_samples=128", "eval_samples=20", "epochs=2", "checkpoints=2",
       "ranked=40", "targets=4", "probes=16", "draws=30"});
  const Conclusion conclusion = find_experiment("tracin").run(run);
  CHECK(held(conclusion, "first order") == std::pair(1, 1));
  CHECK(held(conclusion, "factored") == std::pair(1, 1));
  CHECK(held(conclusion, "one draw") == std::pair(1, 1));
  CHECK(held(conclusion, "two draws") == std::pair(1, 1));
  CHECK(held(conclusion, "variance") == std::pair(1, 1));
  CHECK(held(conclusion, "expected shares").first == 6);
  CHECK(held(conclusion, "expected ranks").first == 1);
  CHECK(held(conclusion, "mislabelled").first == 3);
  CHECK(conclusion.tables.size() == 2);
  CHECK(conclusion.charts.size() == 1);
}

TEST_CASE("tracin: settings are refused before any work", "[fast]") {
  const auto refused = [](const std::vector<std::string>& settings) {
    const TemporaryFolder folder;
    try {
      find_experiment("tracin").run(experiments::testing::smoke_run("tracin", folder, settings));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({"formats=float32"}),
             Catch::Contains("expected signed formats of at most 16"));
  CHECK_THAT(refused({"formats=mxfp4"}), Catch::Contains("--set: formats: expected element"));
  CHECK_THAT(refused({"formats=float8_e8m0fnu"}), Catch::Contains("expected signed formats"));
  CHECK_THAT(refused({"ranked=600"}),
             Catch::Contains("train_samples: expected at least ranked = 600"));
  CHECK_THAT(refused({"checkpoints=200"}),
             Catch::Contains("expected at most the 80 updates, not 200"));
  CHECK_THAT(refused({"nets=mlp,mlp-bn"}), Catch::Contains("mlp-bn: layer bn1 (batch_norm)"));
  CHECK_THAT(refused({"nets=mlq"}), Catch::Contains("mlp"));
}

}  // namespace numemu::tracin_test
