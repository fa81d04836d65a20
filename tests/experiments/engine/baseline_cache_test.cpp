// A baseline on disk is believed whole and of the same work, or not at all.
#include <algorithm>
#include <filesystem>

#include "emu/net/ops/pointwise.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/workbench.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;

namespace {

constexpr std::int64_t kImages = 40;

Workbench small_bench(const std::string& cache, bool fresh = false) {
  return {testing::small_dataset(), testing::small_net(), kImages, {cache, fresh}};
}

BaselineCache cache_of(const std::string& folder, const Workbench& bench) {
  return {folder, bench.trained, bench.dataset, bench.reference, bench.eval_images};
}

bool same(const net::Evaluation& a, const net::Evaluation& b) {
  return a.samples == b.samples && a.n == b.n && a.correct == b.correct && a.loss == b.loss &&
         a.right == b.right && a.outputs == b.outputs;
}

}  // namespace

TEST_CASE("rows are the same bytes with a cold, warm, damaged or absent cache", "[fast]") {
  const test::TemporaryFolder folder;
  const Point point =
      parse_sweep(R"({"numemu_sweep": 1, "grid": {"roles.weight.format": ["mxfp4"]}})", "s.json")
          .points[0];
  const auto row_of = [&](Workbench bench) { return to_json(run_point(point, bench)).dump(); };
  const std::string none = row_of(small_bench(""));
  CHECK(row_of(small_bench(folder.path())) == none);
  const Workbench warm = small_bench(folder.path());
  CHECK(warm.dataset.test_reads() == 0);
  CHECK(row_of(small_bench(folder.path())) == none);

  const std::string path = cache_of(folder.path(), warm).path();
  const std::string kept = test::read_file(path);
  // Believed figures would be these.
  std::string other = kept;
  other[kept.find("\n0") == std::string::npos ? kept.size() / 2 : kept.size() - 80] ^= 1;
  test::write_file(path, other);
  const Workbench mended = small_bench(folder.path());
  CHECK(mended.dataset.test_reads() > 0);
  CHECK(test::read_file(path) == kept);
  CHECK(row_of(small_bench(folder.path())) == none);
}

TEST_CASE("no damaged byte, cut or addition is believed", "[fast]") {
  const test::TemporaryFolder folder;
  const Workbench bench = small_bench(folder.path());
  const BaselineCache cache = cache_of(folder.path(), bench);
  const std::string kept = test::read_file(cache.path());
  REQUIRE(cache.read());
  CHECK(same(*cache.read(), bench.baseline));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    std::string damaged = kept;
    damaged[i] ^= 1;
    test::write_file(cache.path(), damaged);
    CHECK_FALSE(cache.read());
    test::write_file(cache.path(), kept.substr(0, i));
    CHECK_FALSE(cache.read());
  }
  test::write_file(cache.path(), kept + "\n");
  CHECK_FALSE(cache.read());
  std::filesystem::remove(cache.path());
  std::filesystem::create_directory(cache.path());
  CHECK_FALSE(cache.read());
  cache.write(bench.baseline);  // no error
}

TEST_CASE("a baseline is that of its network, samples and number of them alone", "[fast]") {
  const test::TemporaryFolder folder;
  const Workbench bench = small_bench(folder.path());
  const std::string path = cache_of(folder.path(), bench).path();
  const auto other = [&](TrainedNet net, std::int64_t images = kImages) {
    const Workbench made(testing::small_dataset(), std::move(net), images);
    return cache_of(folder.path(), made).path();
  };
  CHECK(other(testing::small_net()) == path);
  CHECK(other(testing::small_net(), 39) != path);
  TrainedNet weight = testing::small_net(), source = testing::small_net(),
             name = testing::small_net();
  weight.graph.parameters()[0]->value.data[7] += 1;
  source.source = "another file";
  name.graph.nodes[0].name += "x";
  CHECK(other(std::move(weight)) != path);
  CHECK(other(std::move(source)) != path);
  CHECK(other(std::move(name)) != path);
  // A file under another's name is another's.
  const Workbench fewer(testing::small_dataset(), testing::small_net(), 39);
  const BaselineCache foreign = cache_of(folder.path(), fewer);
  std::filesystem::copy_file(path, foreign.path());
  CHECK_FALSE(foreign.read());
}

TEST_CASE("a baseline is that of the contents of its data and of its graph's attributes",
          "[fast]") {
  const test::TemporaryFolder folder;
  const auto path_of = [&](net::Dataset data, TrainedNet net) {
    return cache_of(folder.path(), Workbench(std::move(data), std::move(net), kImages)).path();
  };
  const std::string path = path_of(testing::small_dataset(), testing::small_net());
  // Another test image, under the same name, with the same images for calibration.
  net::Images test = testing::small_images(400, 2);
  test.pixels[5] ^= 1;
  CHECK(path_of({"small", 10, testing::small_images(5600, 1), std::move(test), {0.4f}, {0.2f}},
                testing::small_net()) != path);
  const auto leaky = [&](float slope) {
    TrainedNet net = testing::small_net();
    const auto relu = std::find_if(net.graph.nodes.begin(), net.graph.nodes.end(),
                                   [](const net::Node& n) { return n.op->kind() == "relu"; });
    REQUIRE(relu != net.graph.nodes.end());
    relu->op = std::make_unique<net::Pointwise>("leaky_relu", net::PointwiseNumbers{slope});
    return path_of(testing::small_dataset(), std::move(net));
  };
  CHECK(leaky(0.1f) == leaky(0.1f));
  CHECK(leaky(0.1f) != leaky(0.2f));
}

TEST_CASE("fresh computes what is kept; a folder that cannot be written is no error", "[fast]") {
  const test::TemporaryFolder folder;
  small_bench(folder.path());
  const Workbench fresh = small_bench(folder.path(), true);
  CHECK(fresh.dataset.test_reads() > 0);
  test::write_file(folder / "file", "");
  CHECK(same(small_bench(folder / "file").baseline, fresh.baseline));
}

TEST_CASE("files unused for longest and what killed writers left go", "[fast]") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "baselines");
  const auto large = [&](const std::string& name) {
    const std::string path = folder / ("baselines/" + name);
    test::write_file(path, "");
    std::filesystem::resize_file(path, BaselineCache::kMostBytes * 3 / 4);
    return path;
  };
  const std::string old = large("old.txt");
  std::filesystem::last_write_time(old,
                                   std::filesystem::last_write_time(old) - std::chrono::hours(1));
  const std::string young = large("young.txt");
  test::write_file(folder / "baselines/killed.txt.numemu-tmp0", "half");
  const Workbench bench = small_bench(folder.path());
  const BaselineCache cache = cache_of(folder.path(), bench);
  CHECK_FALSE(std::filesystem::exists(old));
  CHECK(std::filesystem::exists(young));
  CHECK_FALSE(std::filesystem::exists(folder / "baselines/killed.txt.numemu-tmp0"));
  CHECK(cache.read());
  // A baseline that is read again stays, however long ago it was written.
  const auto age = [&](const std::string& file, int hours) {
    std::filesystem::last_write_time(
        file, std::filesystem::last_write_time(file) - std::chrono::hours(hours));
  };
  age(young, 1);
  age(cache.path(), 2);
  REQUIRE(cache.read());
  large("new.txt");
  small_bench(folder.path(), true).dataset.test_reads();
  CHECK_FALSE(std::filesystem::exists(young));
  CHECK(std::filesystem::exists(cache.path()));
}
