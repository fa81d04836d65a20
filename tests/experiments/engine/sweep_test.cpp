// A whole small sweep: same rows for any threads, shards and interruption; the row keeps its
// schema.
#include "experiments/engine/sweep.hpp"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "emu/net/run_context.hpp"
#include "experiments/engine/run_point.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/rows.hpp"

namespace sweep_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

const char* const kSweep =
    R"~({"numemu_sweep": 1, "net": "mlp", "data": "small", "eval_images": 100,
  "base": {"numemu_recipe": 1, "calibrate": {"samples": 64}, "roles": {"weight": {"format": "int8", "granularity": "channel"}, "activation": {"format": "int8"}}},
  "grid": {"roles.weight.format": ["int2", "int8", "float8_e4m3fn"], "gemms.fprop.unit": ["f32.sequential", "exact"]},
  "points": [{"roles.weight": null, "roles.activation": null}, {"roles.activation.rounding": "sr(8)"}],
  "tie": [["roles.weight.format", "roles.activation.format"]]})~";

const char* const kShort =
    R"~({"numemu_sweep": 1, "net": "mlp", "data": "small", "eval_images": 100, "predictions": false,
  "base": {"numemu_recipe": 1, "calibrate": {"samples": 64}, "roles": {"weight": {"format": "int8"}}},
  "grid": {"roles.weight.format": ["int2", "int4", "int8", "float8_e4m3fn"]}})~";

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/numemu-sweep-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

SweepSummary run(const SweepConfig& config, const Workbench& bench, const std::string& folder,
                 const Shard& shard) {
  RowStore rows = open_rows(config, bench.dataset, bench.trained, folder, shard, Existing::resume);
  return run_sweep(config, bench, rows, folder, shard, {});
}

/// So many threads as long as it lives.
class Threads {
 public:
  explicit Threads(int threads) { omp_set_num_threads(threads); }
  ~Threads() { omp_set_num_threads(before_); }

 private:
  int before_ = omp_get_max_threads();
};

/// Rows of 13 points, and how many ran at the same time.
struct Swept {
  std::string rows;
  std::size_t at_once = 0;
};

SweepConfig many_points() {
  return parse_sweep(
      R"~({"numemu_sweep": 1, "net": "mlp", "data": "small", "eval_images": 40,
  "base": {"numemu_recipe": 1, "calibrate": {"samples": 16}, "roles": {"activation": {"format": "int8"}}},
  "grid": {"roles.weight.format": ["int2", "int3", "int4", "int6", "int8", "float8_e4m3fn"],
           "gemms.fprop.unit": ["f32.sequential", "exact"]},
  "points": [{"roles.activation.rounding": "sr(8)"}]})~",
      "s.json");
}

Swept swept(int threads, std::int64_t budget = net::kNoMemoryBound) {
  const Threads of_run(threads);
  net::RunContext context;
  context.memory.set_budget(budget);
  const net::RunScope scope(context);
  const Folder folder;
  const SweepConfig config = many_points();
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  RowStore rows =
      open_rows(config, bench.dataset, bench.trained, folder.path, {}, Existing::resume);
  Swept result;
  std::set<std::size_t> running;
  SweepHooks hooks;
  hooks.on_work = [&](std::size_t point, const WorkState& at) {
    if (at.done < at.total)
      running.insert(point);
    else
      running.erase(point);
    result.at_once = std::max(result.at_once, running.size());
  };
  run_sweep(config, bench, rows, folder.path, {}, hooks);
  result.rows = content(folder.path + "/rows.jsonl");
  return result;
}

}  // namespace

TEST_CASE("rows are the same bytes for 1, 2, 3 and 4 threads, side by side where points suffice",
          "[fast]") {
  const Swept one = swept(1);
  CHECK(std::count(one.rows.begin(), one.rows.end(), '\n') == 13);
  CHECK(one.at_once == 1);
  for (const int threads : {2, 3}) {
    const Swept several = swept(threads);
    CHECK(several.rows == one.rows);
    CHECK(several.at_once > 1);
  }
  const Swept few_of_each = swept(4);
  CHECK(few_of_each.rows == one.rows);
  CHECK(few_of_each.at_once == 1);
}

TEST_CASE("a budget that holds one point at a time has one at a time", "[fast]") {
  const auto least = [](std::int64_t at_once) {
    net::RunContext context;
    context.memory.set_budget(std::int64_t{1} << 40);
    const net::RunScope scope(context);
    return require_sweep_memory(many_points(), testing::small_dataset(), testing::small_net(),
                                at_once);
  };
  REQUIRE(least(1) < least(2));
  const Swept one = swept(2, least(1)), two = swept(2, least(2));
  CHECK(one.at_once == 1);
  CHECK(two.at_once > 1);
  CHECK(one.rows == two.rows);
}

TEST_CASE("points share what calibration saw, and their rows are the same bytes", "[fast]") {
  const SweepConfig config = parse_sweep(
      R"~({"numemu_sweep": 1, "net": "mlp", "data": "small", "eval_images": 40, "predictions": false,
  "base": {"numemu_recipe": 1, "calibrate": {"samples": 64},
           "roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}}},
  "grid": {"calibrate.rule": ["absmax", "percentile(99)", "mse", "kl"],
           "roles.activation.format": ["int8", "int6"]},
  "points": [{"calibrate.samples": 32}, {"roles.activation.zero_point": "calibrated"},
             {"roles.activation.scale": "mse", "layers": [{"match": "fc1", "roles": {"activation": null}}]}]})~",
      "s.json");
  REQUIRE(config.points.size() == 11);
  const auto bench = [] { return Workbench(testing::small_dataset(), testing::small_net(), 40); };
  const Folder folder;
  Workbench shared = bench();
  const Threads one(1);  // points side by side may calibrate alike before one of them is through
  int skipped = 0;
  double free = 0;
  SweepHooks hooks;
  hooks.seconds = [] { return 0.0; };
  hooks.on_work = [&](std::size_t, const WorkState& at) {
    skipped += at.free > free;
    free = at.free;
  };
  RowStore rows =
      open_rows(config, shared.dataset, shared.trained, folder.path, {}, Existing::resume);
  run_sweep(config, shared, rows, folder.path, {}, hooks);
  // Passes: of the largest magnitudes, of histograms, of 32 samples, of ranges, of all elements.
  CHECK(skipped == 6);
  std::vector<Json> found = merged_rows(folder.path);
  REQUIRE(found.size() == config.points.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    Workbench own = bench();
    found[i].erase("digest");
    CHECK(found[i].dump() == to_json(run_point(config.points[i], own)).dump());
  }
}

TEST_CASE("shards hold the rows of the whole, and a resumed sweep computes only what is missing",
          "[fast]") {
  const SweepConfig config = parse_sweep(kSweep, "s.json");
  Workbench bench(testing::small_dataset(), testing::small_net(), 100);
  Folder whole, split;
  run(config, bench, whole.path, {});
  run(config, bench, split.path, {1, 2});
  run(config, bench, split.path, {0, 2});
  CHECK(merged_rows(whole.path) == merged_rows(split.path));
  // Right answers, which these rows tell, have no losses.
  CHECK_FALSE(std::filesystem::exists(whole.path + "/losses"));

  const std::string rows = content(whole.path + "/rows.jsonl");
  std::filesystem::resize_file(whole.path + "/rows.jsonl", rows.size() / 2);
  const SweepSummary summary = run(config, bench, whole.path, {});
  CHECK(summary.kept > 0);
  CHECK(summary.computed + summary.kept == 8);
  CHECK(content(whole.path + "/rows.jsonl") == rows);
}

TEST_CASE("a folder of another sweep is refused before any sample is evaluated", "[fast]") {
  const SweepConfig config = parse_sweep(kSweep, "s.json"),
                    other = parse_sweep(R"({"numemu_sweep": 1, "net": "mlp", "data": "small",
                                            "eval_images": 100,
                                            "points": [{"roles.weight.format": "int5"}]})",
                                        "other.json");
  const net::Dataset dataset = testing::small_dataset();
  const TrainedNet trained = testing::small_net();
  Folder whole, split;
  Workbench bench(testing::small_dataset(), testing::small_net(), 100);
  run(other, bench, whole.path, {});
  run(other, bench, split.path, {0, 2});
  const std::string rows = content(whole.path + "/rows.jsonl"),
                    kept = content(whole.path + "/sweep.json");
  const auto open = [&](const Folder& folder, const Shard& shard) {
    open_rows(config, dataset, trained, folder.path, shard, Existing::resume);
  };
  CHECK_THROWS_WITH(open(whole, {}), Catch::Contains("a row from another sweep"));
  CHECK_THROWS_WITH(open(split, {1, 2}), Catch::Contains("belongs to another sweep with shards"));
  CHECK(dataset.test_reads() == 0);
  CHECK(content(whole.path + "/rows.jsonl") == rows);
  CHECK(content(whole.path + "/sweep.json") == kept);
}

TEST_CASE("a row keeps its schema, and float32 is its own baseline", "[fast]") {
  const SweepConfig config = parse_sweep(kSweep, "s.json");
  Workbench bench(testing::small_dataset(), testing::small_net(), 100);
  for (const Point& point : config.points) {
    const auto row = to_json(run_point(point, bench));
    for (const char* key : {"key", "point", "bits", "metrics", "predicted", "layers", "version"})
      REQUIRE(row.contains(key));
    for (const char* key : {"top1", "n", "ci95", "loss"}) REQUIRE(row["metrics"].contains(key));
    REQUIRE(row["layers"].size() == 3);
    for (const auto& layer : row["layers"]) {
      for (const char* key : {"name", "gemm", "sqnr_db", "predicted_db", "overflow", "underflow"})
        REQUIRE(layer.contains(key));
    }
    CHECK(row["key"] == row_key(row["point"]));
    if (point.row.recipe["roles"]["weight"].is_null()) {
      CHECK(row["metrics"]["difference"] == 0);
      CHECK(row["metrics"]["sqnr_db"].is_null());
      CHECK(row["bits"]["weight"] == 32);
      CHECK(row["predicted"]["tensors"].empty());
    } else {
      CHECK(row["predicted"]["tensors"].size() == 6);
    }
    for (const auto& tensor : row["predicted"]["tensors"]) {
      INFO(tensor.dump());
      CHECK(tensor["verdict"] != "fails");
    }
  }
}

TEST_CASE("histograms count every element", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 10);
  const auto tensors = tensor_histograms(bench)["tensors"];
  REQUIRE(tensors.size() == 6);
  for (const auto& tensor : tensors) {
    std::int64_t total = 0;
    for (const auto& count : tensor["counts"]) total += count.get<std::int64_t>();
    CHECK(total == tensor["n"]);
  }
}

TEST_CASE("losses stand beside rows: the same for shards, and computed again where they are lost",
          "[fast]") {
  SweepConfig config = parse_sweep(kShort, "s.json");
  set_metrics(config, {"log_loss"});
  BenchOptions options;
  options.metrics = {"log_loss"};
  Workbench bench(testing::small_dataset(), testing::small_net(), 100, options);
  Folder whole, split;
  run(config, bench, whole.path, {});
  run(config, bench, split.path, {1, 2});
  run(config, bench, split.path, {0, 2});
  const std::vector<Json> rows = merged_rows(whole.path);
  CHECK(rows == merged_rows(split.path));
  for (const Json& row : rows) {
    const JudgedSums own = read_losses(whole.path, read_row(row));
    CHECK(own.score->name == "log_loss");
    CHECK(own.table.samples() == 100);
    const double mean = own.score->figure(own.table)(std::vector<std::int64_t>(100, 1));
    CHECK(mean == Approx(row["scores"][0]["value"].get<double>()).epsilon(1e-5));
    CHECK(read_losses(split.path, read_row(row)).table.sums == own.table.sums);
  }
  const std::string lost = whole.path + "/" + rows[3]["losses"]["file"].text(),
                    before = content(lost);
  std::filesystem::remove(lost);
  RowStore store =
      open_rows(config, bench.dataset, bench.trained, whole.path, {}, Existing::resume);
  REQUIRE(store.damaged().size() == 1);
  CHECK_THAT(store.damaged()[0],
             Catch::Contains("line 4: a row without its losses") && Catch::Contains(lost));
  CHECK(run_sweep(config, bench, store, whole.path, {}, {}).computed == 1);
  CHECK(content(lost) == before);
  CHECK(merged_rows(whole.path) == rows);
}

}  // namespace sweep_test
