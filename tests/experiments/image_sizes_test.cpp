// Image sizes from settings to conclusion.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/experiments/smoke_run.hpp"

namespace numemu::image_sizes_test {

using namespace numemu::experiments;
using experiments::testing::held;
using numemu::test::TemporaryFolder;

ExperimentRun small(const TemporaryFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> settings = {"train_samples=16",   "batch=8",  "eval_samples=8",
                                       "tests=14,28",        "small=14", "norm_samples=8",
                                       "sizes=28:0.5,14:0.5"};
  settings.insert(settings.end(), more.begin(), more.end());
  return experiments::testing::smoke_run("image-sizes", folder, settings);
}

TEST_CASE("image-sizes: counted multiply-adds are predicted", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = small(folder);
  const Conclusion conclusion = find_experiment("image-sizes").run(run);
  CHECK(held(conclusion, "cost") == std::pair(5, 5));
  CHECK(held(conclusion, "area") == std::pair(1, 0));  // 14 pixels: 7 halves to 4
  CHECK(held(conclusion, "weights").first == 1);
  CHECK(conclusion.tables.size() == 2);
  CHECK(conclusion.charts.size() == 1);
}

TEST_CASE("image-sizes: settings are refused before any work", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& setting) {
    return test::message_of([&] { find_experiment("image-sizes").run(small(folder, {setting})); });
  };
  CHECK_THAT(refused("sizes=28:0.5,14:0.4"), Catch::Contains("shares that add up to 1, not 0.9"));
  CHECK_THAT(refused("sizes=28-0.5"), Catch::Contains("expected SIZE:SHARE"));
  CHECK_THAT(refused("sizes=28:1"), Catch::Contains("sizes: expected at least two sizes that are"));
  CHECK_THAT(refused("tests=14,20"),
             Catch::Contains("tests: expected the size of the data set, 28, among them"));
  CHECK_THAT(refused("tests=28"), Catch::Contains("tests: expected another size beside 28"));
  CHECK_THAT(refused("small=28"), Catch::Contains("small: expected another size than that of"));
  CHECK_THAT(refused("net=lenet"), Catch::Contains("network lenet does not take images of 14 x"));
  CHECK_THAT(refused("formats=float32,mxfp9"), Catch::Contains("mxfp9"));
  CHECK_THAT(refused("shift=0"), Catch::Contains("augmentation where copies change"));
}

}  // namespace numemu::image_sizes_test
