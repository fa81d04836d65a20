// An estimate follows predictions and the cache, and is near the time that the sweep takes.
#include "experiments/engine/sweep.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <time.h>

#include <atomic>

#include "emu/net/gemm_layers.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/files.hpp"

namespace estimate_test {

using namespace numemu::experiments;

namespace {

/// Processor time is then the time of the work, whatever else runs.
struct OneThread {
  OneThread() { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before); }
  int before = omp_get_max_threads();
};

}  // namespace

// The clock counts readings, so that the estimate is exact.
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
  const SweepEstimate all = estimate();
  CHECK(all.points == 2);
  CHECK(all.kept == 0);
  CHECK(estimate().seconds == Approx(all.seconds));
  auto [dataset, trained] = load_sweep(config, folders);
  Workbench(std::move(dataset), std::move(trained), config.eval_images, {folders.cache});
  const SweepEstimate cached = estimate();
  CHECK(cached.seconds < all.seconds);
  turn_predictions_off(config);
  CHECK(estimate().seconds < cached.seconds);
}

TEST_CASE("an estimate counts no calibration where the checkpoint has the ranges", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string plain = folder / "n.safetensors", tuned = folder / "t.safetensors";
  testing::write_click_network(plain);
  numemu::net::Checkpoint checkpoint = numemu::net::read_safetensors(plain, true);
  numemu::policies::FixedRanges ranges;
  const numemu::net::Graph graph = numemu::net::build_net("dlrm-small", {21}, 2);
  for (const numemu::net::GemmLayer& layer : numemu::net::gemm_layers(graph))
    if (layer.weight != nullptr)
      ranges[layer.name].activation = numemu::policies::ValueRange{-1, 1};
  numemu::policies::add_ranges(checkpoint, ranges);
  numemu::net::write_safetensors(tuned, checkpoint);
  // In readings of the clock; a product of two activations has no range of its own.
  const auto estimate = [&](const std::string& net) {
    const SweepConfig config = parse_sweep(R"({"numemu_sweep": 1, "net": ")" + net +
                                               R"(", "data": "clicks", "eval_images": 40,
        "predictions": false, "grid": {"roles.activation.format": ["int8"]},
        "base": {"numemu_recipe": 1,
                 "layers": [{"match": "interaction", "roles": {"activation": null}}]}})",
                                           "s.json");
    std::atomic<int> readings = 0;
    return estimate_sweep(
               config, {folder.path(), folder.path()}, folder / "out", {}, Existing::resume,
               [&] { return static_cast<double>(++readings); }, 1e9)
        .seconds;
  };
  // The pass over all samples takes a reading, and calibration reads all but one once more.
  CHECK(estimate(tuned) + 0.9 < estimate(plain));
}

// Slow, because other work on the machine may make it fail: the estimate rests on trials of
// milliseconds.
TEST_CASE("an estimate is near the processor time of a sweep with cheap and dear points",
          "[slow]") {
  constexpr double kMostRatio = 2;
  const auto seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const OneThread one_thread;
  const numemu::test::TemporaryFolder folder;
  testing::write_click_network(folder / "n.safetensors");
  struct Case {
    const char *predictions, *images, *seeds;
  };
  // Without predictions and with few images, calibration takes most of a point; with them, blocks
  // take several times as long as the other points. With few images and many points, what is made
  // once for all points would be much if each point counted it.
  const Case c = GENERATE(Case{"false", "40", "0, 1, 2, 3, 4, 5, 6, 7"}, Case{"true", "1000", "0"},
                          Case{"true", "40", "0, 1, 2, 3, 4, 5, 6, 7"});
  const SweepConfig config =
      parse_sweep(R"({"numemu_sweep": 1, "net": ")" + (folder / "n.safetensors") +
                      R"(", "data": "clicks", "eval_images": )" + c.images +
                      R"(, "predictions": )" + c.predictions + R"(, "seeds": [)" + c.seeds + R"(],
            "base": {"numemu_recipe": 1,
                     "gemms": {"fprop": {"unit": "neutral.mac.bfloat16.rne"}}},
            "grid": {"roles.weight.format": ["int8", "int6", "int5", "int4", "mxfp4"],
                     "roles.activation.format": ["int8", "int6", "int5", "int4", "mxfp4"]},
            "tie": [["roles.weight.format", "roles.activation.format"]]})",
                  "s.json");
  const Folders folders{folder.path(), folder.path()};
  // Other work on the machine slows either part for a moment: one of three tries has to agree.
  double ratio = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::string out = folder / fmt::format("out{}", attempt);
    const double estimated =
        estimate_sweep(config, folders, out, {}, Existing::resume, seconds).seconds;
    const double begin = seconds();
    auto [dataset, trained] = load_sweep(config, folders);
    RowStore rows = open_rows(config, dataset, trained, out, {}, Existing::resume);
    Workbench bench(std::move(dataset), std::move(trained), config.eval_images, {folders.cache});
    run_sweep(config, bench, rows, out, {}, {});
    ratio = estimated / (seconds() - begin);
    if (ratio < kMostRatio && ratio > 1 / kMostRatio) break;
  }
  CHECK(ratio < kMostRatio);
  CHECK(ratio > 1 / kMostRatio);
}

}  // namespace estimate_test
