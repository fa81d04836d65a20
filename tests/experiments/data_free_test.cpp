// Samples without data: the floor in closed form, and the experiment from settings to conclusion.
#include <cmath>
#include <filesystem>

#include "emu/net/data/dataset.hpp"
#include "experiments/data_free/data_free.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace data_free_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

ExperimentRun data_free_run(const TemporaryFolder& folder,
                            const std::vector<std::string>& settings) {
  return testing::smoke_run("data-free", folder, settings);
}

}  // namespace

TEST_CASE("data-free: the divergence of independent data", "[fast]") {
  using data_free::floor_divergence;
  CHECK(floor_divergence(16) == Approx(1.40).margin(5e-3));
  CHECK(floor_divergence(64) == Approx(1.08379).margin(1e-5));
  CHECK(floor_divergence(256) == Approx(1.016).margin(5e-3));
  const TemporaryFolder folder;
  Conclusion conclusion;
  data_free::add_floor(data_free_run(folder, {}), conclusion);
  REQUIRE(conclusion.findings.size() == 3);
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    CHECK(testing::agrees(finding));
  }
}

TEST_CASE("data-free: every source calibrates, and its samples are written", "[slow]") {
  const TemporaryFolder folder;
  const ExperimentRun run = data_free_run(folder, {"seeds=2", "train_samples=256", "samples=16",
                                                   "samples_of_batch=16", "steps=20", "images=50"});
  Conclusion conclusion;
  data_free::add_sources(run, testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == 4);
  for (const auto& row : conclusion.tables[0].rows)
    CHECK(row.size() == conclusion.tables[0].header.size());
  CHECK(conclusion.findings.size() == 3 * 4 + 2);
  for (const Finding& finding : conclusion.findings) {
    CHECK(std::isfinite(finding.measured));
    // Made samples are nearer to the statistics than the noise they begin as.
    if (finding.claim == "similarity") CHECK(finding.high < 1);
  }
  // The class-conditional samples come back as a data set.
  const net::Dataset made =
      net::load_dataset("npy:" + (folder / "out/samples/class-0") + ",test=1", folder.path());
  CHECK(made.input_shape() == net::Shape{8, 8, 1});
  CHECK(made.calibration_count() == 15);
  CHECK(std::filesystem::exists(folder / "out/samples/real-1/x.npy"));
}

}  // namespace data_free_test
