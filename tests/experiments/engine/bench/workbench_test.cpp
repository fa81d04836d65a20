// Loading trained networks: shipped ones, files of every kind, and what is refused.
#include "experiments/engine/bench/workbench.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "experiments/engine/bench/baseline_cache.hpp"
#include "experiments/engine/run_point.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

namespace workbench_test {

using namespace numemu::experiments;
using namespace numemu;
using experiments::Folders;
using net::test::ModelWriter;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

/// An npz archive of the network's parameters, the names changed where asked.
std::string npz_of(const net::Graph& graph, const std::string& prefix = "") {
  std::vector<net::test::ZipItem> items;
  for (const net::Parameter* p : graph.parameters()) {
    std::string data;
    for (const float v : p->value.data) data += net::test::packed(v);
    items.push_back(
        {prefix + p->name + ".npy", net::test::npy(ArrayType::float32, p->value.shape, data)});
  }
  return net::test::zip(items);
}

void save(const net::Graph& graph, const std::string& path, const std::string& net) {
  net::Checkpoint checkpoint = net::parameters_of(graph);
  if (!net.empty()) checkpoint.metadata = {{"net", net}};
  net::write_safetensors(path, checkpoint);
}

std::vector<float> values(const net::Graph& graph) {
  std::vector<float> all;
  for (const net::Parameter* p : graph.parameters())
    all.insert(all.end(), p->value.data.begin(), p->value.data.end());
  return all;
}

/// A pixel-wise convolution and a linear layer for images [h, w, 1] of that size.
ModelWriter linear_model(std::int64_t size) {
  ModelWriter model;
  model.input("x", {-1, 1, size, size})
      .floats("fc.weight", {10, size * size}, std::vector<float>(10 * size * size, 0.5f))
      .floats("c.weight", {1, 1, 1, 1}, {2})
      .node("Conv", {"x", "c.weight"}, {"c"})
      .node("Flatten", {"c"}, {"f"})
      .node("Gemm", {"f", "fc.weight"}, {"y"}, {net::test::attribute("transB", std::int64_t{1})})
      .output("y");
  return model;
}

}  // namespace

TEST_CASE("weights of a network are the same from every kind of file", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = testing::small_dataset();
  const TrainedNet small = testing::small_net();
  save(small.graph, folder / "mlp-small.safetensors", "mlp");
  save(small.graph, folder / "nameless.safetensors", "");
  test::write_file(folder / "w.npz", npz_of(small.graph));
  const Folders folders{folder.path(), folder.path()};

  std::string digest;
  for (const std::string& name :
       {std::string("mlp"), folder / "mlp-small.safetensors",
        "mlp=" + (folder / "nameless.safetensors"), "mlp=" + (folder / "w.npz")}) {
    INFO(name);
    const TrainedNet trained = load_trained_net(name, data, folders);
    CHECK(values(trained.graph) == values(small.graph));
    CHECK(trained.graph.name == "mlp");
    CHECK(trained.digest.size() == 16);
    if (digest.empty()) digest = trained.digest;
    CHECK(trained.digest == digest);
  }
  TrainedNet other = load_trained_net("mlp", data, folders);
  other.graph.parameters()[0]->value.data[0] += 1;
  save(other.graph, folder / "mlp-small.safetensors", "mlp");
  CHECK(load_trained_net("mlp", data, folders).digest != digest);
  CHECK(load_trained_net("mlp", data, folders).path == folder / "mlp-small.safetensors");
}

TEST_CASE("an ONNX file is a network with its weights", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = testing::small_dataset();
  test::write_file(folder / "tiny.onnx", linear_model(8).file());
  const TrainedNet trained = load_trained_net(folder / "tiny.onnx", data, {});
  CHECK(trained.graph.name == "tiny");
  CHECK(trained.digest.size() == 16);
  test::write_file(folder / "large.onnx", linear_model(9).file());
  CHECK_THAT(message_of([&] { load_trained_net(folder / "large.onnx", data, {}); }),
             Catch::Contains("large.onnx: expected an input of shape [1, 8, 8] for the data set "
                             "small"));
  test::write_file(folder / "two.onnx",
                   linear_model(8).node("Relu", {"y"}, {"z"}).output("z").file());
  const TrainedNet two = load_trained_net(folder / "two.onnx", data, {});
  CHECK(two.graph.outputs.size() == 2);
  CHECK(two.graph.outputs[0].value + 1 == static_cast<int>(two.graph.value_count()));
  CHECK_THAT(message_of([&] { load_trained_net(folder / "none.onnx", data, {}); }),
             Catch::Contains("none.onnx"));
}

TEST_CASE("files and names that do not serve are refused", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = testing::small_dataset();
  const TrainedNet small = testing::small_net();
  const Folders folders{folder.path(), folder.path()};
  const auto message = [&](const std::string& name) {
    return message_of([&] { load_trained_net(name, data, folders); });
  };
  save(small.graph, folder / "nameless.safetensors", "");
  CHECK_THAT(message(folder / "nameless.safetensors"),
             Catch::Contains("expected metadata 'net'") && Catch::Contains("NAME=FILE"));
  test::write_file(folder / "w.npz", npz_of(small.graph));
  CHECK_THAT(message(folder / "w.npz"), Catch::Contains("expected metadata 'net'"));
  test::write_file(folder / "other.npz", npz_of(small.graph, "model."));
  CHECK_THAT(message("mlp=" + (folder / "other.npz")), Catch::Contains("other.npz"));
  CHECK_THAT(message("mpl=" + (folder / "w.npz")), Catch::Contains("did you mean 'mlp'"));
  CHECK_THAT(message("lstm-char=" + (folder / "w.npz")),
             Catch::Contains("network lstm-char: expected text, data set small has images"));
  CHECK_THAT(message("lenet"), Catch::Contains("numemu ships no trained lenet for small"));
  CHECK_THAT(message("lenat"), Catch::Contains("did you mean 'lenet'") &&
                                   Catch::Contains(".safetensors, .gguf, .npz or .onnx"));
  CHECK_THAT(message("mlp=weights.bin"), Catch::Contains(".safetensors, .gguf, .npz or .onnx"));
  CHECK_THAT(message("none.safetensors"), Catch::Contains("none.safetensors"));
}

TEST_CASE("folding changes the digest of networks with norms only", "[fast]") {
  const net::Dataset data = testing::small_dataset();
  TrainedNet plain = testing::small_net();
  const TemporaryFolder folder;
  save(plain.graph, folder / "mlp-small.safetensors", "mlp");
  plain = load_trained_net("mlp", data, {folder.path(), ""});
  const std::string before = plain.digest;
  fold_batch_norm(plain);
  CHECK(plain.digest == before);

  TrainedNet normed{net::build_net("vgg-small", {8, 8, 1}, 10), "", ""};
  net::initialize(normed.graph, 1);
  save(normed.graph, folder / "v.safetensors", "vgg-small");
  normed = load_trained_net(folder / "v.safetensors", data, {});
  const std::string with_norms = normed.digest;
  fold_batch_norm(normed);
  CHECK(normed.digest != with_norms);
  for (const net::Node& node : normed.graph.nodes) CHECK(node.op->kind() != "batch_norm");
}

TEST_CASE("a bench has as many test images as there are and a bounded reference", "[fast]") {
  const Workbench bench(testing::small_dataset(), testing::small_net(), 1000);
  CHECK(bench.eval_images == 400);
  CHECK(bench.baseline.samples == 400);
  // The mlp has few activations: all calibration samples are held.
  CHECK(bench.reference.samples() == bench.dataset.calibration_count());
  CHECK(bench.reference.logits.shape == net::Shape{bench.reference.samples(), 10});
}

// Whatever a run reads of its network, another is another network.

namespace {

/// What a checkpoint is made of.
struct Parts {
  net::Graph graph = testing::small_net().graph;
  std::optional<net::Graph> before = {};
  policies::FixedRanges ranges = {{"fc1", {{}, policies::ValueRange{-1, 1}}}};
  std::vector<std::string> metadata = {};  ///< keys that rows have notes of
};

/// Loaded as commands do.
TrainedNet loaded(const Parts& parts, const std::string& path) {
  net::Checkpoint checkpoint = net::parameters_of(parts.graph);
  checkpoint.metadata = {{"net", parts.graph.name}};
  for (const std::string& key : parts.metadata) checkpoint.metadata.emplace_back(key, "{}");
  policies::add_ranges(checkpoint, parts.ranges);
  if (parts.before) net::add_tuned_from(checkpoint, *parts.before);
  net::write_safetensors(path, checkpoint);
  return load_trained_net(path, testing::small_dataset(), {});
}

}  // namespace

TEST_CASE("each content of a checkpoint gives rows, trials and states another key", "[fast]") {
  const test::TemporaryFolder folder;
  const auto key_of = [&](const auto& change, const std::string& file = "x.safetensors") {
    Parts parts;
    change(parts);
    const TrainedNet trained = loaded(parts, folder / file);
    Json point = {{"part", "test"}};
    identify(point, trained);
    const Point row = parse_sweep(R"({"numemu_sweep": 1})", "s.json").points[0];
    CHECK(row_key(identify(row, testing::small_dataset(), trained, 10)) ==
          row_key(identify(row, testing::small_dataset(), trained, 10)));
    return row_key(point) + row_key(identify(row, testing::small_dataset(), trained, 10));
  };
  const auto same = [](Parts&) {};
  const std::string key = key_of(same);
  CHECK(key_of(same, "moved.safetensors") == key);
  std::set<std::string> keys = {key};
  std::size_t changes = 1;
  const auto changed = [&](const auto& change) {
    keys.insert(key_of(change));
    CHECK(keys.size() == ++changes);
  };
  changed([](Parts& p) { p.graph.parameters()[0]->value.data[7] += 1; });
  changed([](Parts& p) { p.ranges["fc1"].activation->high = 2; });
  changed([](Parts& p) { p.ranges["fc1"].weight = {{-1, 1}}; });
  changed([](Parts& p) { p.ranges.clear(); });
  changed([](Parts& p) { p.before = testing::small_net().graph; });
  changed([](Parts& p) {
    p.before = testing::small_net().graph;
    p.before->parameters()[0]->value.data[7] += 1;
  });
  changed([](Parts& p) { p.metadata = {"training", "recipe"}; });
  // Graphs of two ONNX files with the same weights.
  TrainedNet first = loaded({}, folder / "x.safetensors"),
             second = loaded({}, folder / "y.safetensors");
  first.source = "0123456789abcdef0";
  second.source = "1123456789abcdef0";
  CHECK(run_identity(first) != run_identity(second));
}

// A baseline on disk is believed whole and of the same work, or not at all.

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
         a.right == b.right && a.answers == b.answers && a.outputs == b.outputs &&
         a.tables.at(0).sums == b.tables.at(0).sums;
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

namespace {

/// Every `stride`th byte, and the cut before it.
void check_damage(std::size_t stride) {
  const test::TemporaryFolder folder;
  const Workbench bench = small_bench(folder.path());
  const BaselineCache cache = cache_of(folder.path(), bench);
  const std::string kept = test::read_file(cache.path());
  REQUIRE(cache.read());
  CHECK(same(*cache.read(), bench.baseline));
  for (std::size_t i = 0; i < kept.size(); i += stride) {
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

}  // namespace

TEST_CASE("damaged bytes, cuts and additions are not believed", "[fast]") { check_damage(11); }

TEST_CASE("no damaged byte, cut or addition is believed", "[slow]") { check_damage(1); }

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

}  // namespace workbench_test
