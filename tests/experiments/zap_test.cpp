// The experiment from settings to conclusion, on small images.
#include <cstdint>

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/experiment.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

namespace zap_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// IDX files of 28 x 28 images under the names that mnist:DIR reads.
void write_images(const TemporaryFolder& folder, const std::string& split, std::uint32_t count) {
  const net::Images small = experiments::testing::small_images(count, count);
  std::string pixels = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
  for (std::uint32_t i = 0; i < count; ++i)
    for (int y = 0; y < 28; ++y)
      for (int x = 0; x < 28; ++x)
        pixels += static_cast<char>(small.pixels[i * 64 + y * 2 / 7 * 8 + x * 2 / 7]);
  std::string labels = big_endian(0x801) + big_endian(count);
  labels.append(small.labels.begin(), small.labels.end());
  test::write_file(folder / (split + "-images-idx3-ubyte"), pixels);
  test::write_file(folder / (split + "-labels-idx1-ubyte"), labels);
}

ExperimentRun zap_run(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  net::Graph graph = net::build_net("lenet", {28, 28, 1}, 10);
  net::initialize(graph, 5);
  net::Checkpoint checkpoint = net::parameters_of(graph);
  checkpoint.metadata = {{"net", "lenet"}};
  net::write_safetensors(folder / "n.safetensors", checkpoint);
  write_images(folder, "train", 5600);
  write_images(folder, "t10k", 60);
  std::vector<std::string> settings = {"net=" + (folder / "n.safetensors"),
                                       "data=mnist:" + folder.path(), "images=60",
                                       "train_images=64", "epochs=1"};
  settings.insert(settings.end(), more.begin(), more.end());
  const Experiment& experiment = find_experiment("zap");
  return {.settings = Settings(experiment.settings, Size::smoke, settings),
          .seed = 0,
          .out = folder.path(),
          .folders = {folder.path(), folder.path()},
          .hooks = {}};
}

Conclusion answer(const ExperimentRun& run) { return find_experiment("zap").run(run); }

bool is_identity(const Finding& finding) {
  return finding.what.starts_with("tallies whose") || finding.what.starts_with("error where");
}

}  // namespace

TEST_CASE("zap: one mask, one threshold, the identities", "[fast]") {
  const TemporaryFolder folder;
  const Conclusion conclusion = answer(zap_run(folder, {"masks=5", "thresholds=0.2"}));
  CHECK(conclusion.tables[0].rows.size() == 1);
  int exact = 0;
  for (const Finding& finding : conclusion.findings) {
    if (!is_identity(finding)) continue;
    INFO(finding.what);
    CHECK(finding.self_check);
    CHECK(finding.verdict == Verdict::holds);
    ++exact;
  }
  CHECK(exact == 3);
}

TEST_CASE("zap: tables, charts and findings for every mask and choice of layers", "[slow]") {
  const TemporaryFolder folder;
  const ExperimentRun run = zap_run(
      folder, {"masks=4,5", "layers=inner,all", "seeds=1", "thresholds=-0.5,0,0.5", "finetune=1"});
  const Conclusion conclusion = answer(run);
  REQUIRE(conclusion.sentences.size() == 2 + 4);
  CHECK_THAT(conclusion.sentences[0], Catch::StartsWith("With the network as it is"));
  CHECK_THAT(conclusion.sentences[1], Catch::StartsWith("With fine-tuning"));
  REQUIRE(conclusion.tables.size() == 3);
  CHECK(conclusion.tables[0].rows.size() == 2 * 2 * 3);
  // inner: relu2; all: relu1, relu2 and both together.
  CHECK(conclusion.tables[1].rows.size() == 2 * 1 + 2 * 3);
  CHECK(conclusion.tables[2].rows.size() == 2 * 2);
  for (const ResultTable& table : conclusion.tables)
    for (const auto& row : table.rows) CHECK(row.size() == table.header.size());
  // Thresholds follow each other: savings rise.
  for (std::size_t i = 1; i < 3; ++i)
    CHECK(std::stod(conclusion.tables[0].rows[i][3]) >=
          std::stod(conclusion.tables[0].rows[i - 1][3]));

  REQUIRE(conclusion.charts.size() == 4);
  CHECK(conclusion.charts[0].series.size() == 4);
  for (const std::size_t i : {1, 2}) {
    // Two layers under two masks, and the random predictor.
    CHECK(conclusion.charts[i].series.size() == 5);
    CHECK(conclusion.charts[i].series.back().predicted);
  }
  CHECK(conclusion.charts[3].series[0].points.size() == 4);
  for (const ChartSeries& roc : conclusion.charts[1].series) {
    CHECK(roc.points.front().x == 0);
    CHECK(roc.points.back().y == 100);
    // More zeros are skipped where more values are.
    for (std::size_t i = 1; i < roc.points.size(); ++i)
      CHECK(roc.points[i].y >= roc.points[i - 1].y);
  }

  int exact = 0, random = 0;
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    const bool is_exact =
        finding.what.starts_with("tallies whose") || finding.what.starts_with("error where");
    exact += is_exact;
    if (is_exact) CHECK(finding.verdict == Verdict::holds);
    random += finding.what.starts_with("error of a random predictor");
  }
  CHECK(exact == 3);
  CHECK(random == 4);

  // Found again, the answer is the same.
  CHECK(json_of(file_of(find_experiment("zap"), run, answer(run))) ==
        json_of(file_of(find_experiment("zap"), run, conclusion)));
}

TEST_CASE("zap: settings that are refused", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& setting) {
    return message_of([&] { answer(zap_run(folder, {setting})); });
  };
  CHECK_THAT(refused("masks=5,5"), Catch::Contains("masks: expected each value once"));
  CHECK_THAT(refused("masks=11"), Catch::Contains("masks: expected whole numbers from 3 to 10"));
  CHECK_THAT(refused("masks=4.5"), Catch::Contains("masks: expected whole numbers"));
  CHECK_THAT(refused("layers=outer"), Catch::Contains("expected inner, all or both"));
  CHECK_THAT(refused("layers=all,all"), Catch::Contains("each value once"));
  CHECK_THAT(refused("thresholds=x"), Catch::Contains("thresholds: expected numbers"));
  CHECK_THAT(refused("budgets=0"), Catch::Contains("budgets: expected numbers"));
}

}  // namespace zap_test
