// layer-parallel: the experiment from settings to conclusion, and what a method stores.
#include "experiments/layer_parallel/training.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace numemu::layer_parallel_experiment_test {

using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

TEST_CASE("layer-parallel: gradients and speed follow their closed forms", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion conclusion = find_experiment("layer-parallel")
                                    .run(experiments::testing::smoke_run(
                                        "layer-parallel", folder,
                                        {"stages=4", "speed_nets=lenet", "speed_stages=2,4",
                                         "train_samples=128", "eval_samples=50", "batch=64"}));
  for (const auto& [claim, count] :
       {std::pair("penalty", 2), std::pair("multipliers", 4), std::pair("locking", 2 * 4),
        std::pair("sweep", 2 * 4), std::pair("noise", 2)}) {
    INFO(claim);
    CHECK(experiments::testing::held(conclusion, claim).first == count);
    CHECK(experiments::testing::held(conclusion, claim).second == count);
  }
  // The publication's claim is about stages whose variables are kept whole, in float32.
  CHECK(experiments::testing::held(conclusion, "training").first == 3);
  CHECK(experiments::testing::held(conclusion, "filtered").first == 1);
  CHECK(experiments::testing::held(conclusion, "few bits").first == 2);
  for (const char* const claim : {"speed", "unlocked"}) {
    INFO(claim);
    const auto [findings, hold] = experiments::testing::held(conclusion, claim);
    CHECK(findings >= 2);
    CHECK(hold == findings);
  }
}

TEST_CASE("layer-parallel: a network has only so many stages", "[fast]") {
  const TemporaryFolder folder;
  CHECK(message_of([&] {
          find_experiment("layer-parallel")
              .run(experiments::testing::smoke_run("layer-parallel", folder,
                                                   {"stages=9", "chains=1"}));
        }) == "mlp-deep: expected 2 to 5 stages, not 9");
}

TEST_CASE("layer-parallel: what is stored of a variable", "[fast]") {
  using layer_parallel::Method;
  net::Tensor x({1, 2, 2, 1});
  x.data = {1, 2, 3, 6};
  layer_parallel::store({.filtered = true}, x);
  CHECK(x.data == std::vector<float>{3, 3, 3, 3});
  const layer_parallel::StageVariables variables{{x, x}, {}, 1};
  CHECK(layer_parallel::stored_bytes({}, variables) == 16);
  CHECK(layer_parallel::stored_bytes({.filtered = true}, variables) == 4);
  CHECK(layer_parallel::stored_bytes({.format = "int4"}, variables) == 2);
}

}  // namespace numemu::layer_parallel_experiment_test
