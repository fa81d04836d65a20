// The estimate follows predictions and the cache. Its clock counts readings, so that it is exact.
#include "experiments/engine/estimate.hpp"

#include <atomic>

#include "experiments/engine/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/files.hpp"

using namespace numemu::experiments;

TEST_CASE("an estimate counts predictions and a missing baseline", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  testing::write_click_network(folder / "n.safetensors");
  SweepConfig config = parse_sweep(R"({"numemu_sweep": 1, "net": ")" + (folder / "n.safetensors") +
                                       R"(", "data": "clicks", "eval_images": 40,
                          "grid": {"roles.weight.format": ["int4", "int8"]}})",
                                   "s.json");
  const Folders folders{folder.path(), folder.path()};
  const auto estimate = [&] {
    std::atomic<int> readings = 0;
    return estimate_sweep(
        config, folders, folder / "out", {}, Existing::resume,
        [&] { return static_cast<double>(++readings); }, 1e9);
  };
  const Estimate all = estimate();
  CHECK(all.points == 2);
  CHECK(all.kept == 0);
  CHECK(estimate().seconds == Approx(all.seconds));
  auto [dataset, trained] = load_sweep(config, folders);
  Workbench(std::move(dataset), std::move(trained), config.eval_images, {folders.cache});
  const Estimate cached = estimate();
  CHECK(cached.seconds < all.seconds);
  turn_predictions_off(config);
  CHECK(estimate().seconds < cached.seconds);
}
