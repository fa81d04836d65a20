// Loading trained networks: shipped ones, files of every kind, and what is refused.
#include "experiments/engine/workbench.hpp"

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;
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
             Catch::Contains("large.onnx: expected an input of shape [8, 8, 1] for the data set "
                             "small"));
  test::write_file(folder / "two.onnx",
                   linear_model(8).node("Relu", {"y"}, {"z"}).output("z").file());
  CHECK_THAT(message_of([&] { load_trained_net(folder / "two.onnx", data, {}); }),
             Catch::Contains("expected a network of one input and one output, found 1 and 2"));
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
                                   Catch::Contains(".safetensors, .npz or .onnx"));
  CHECK_THAT(message("mlp=weights.bin"), Catch::Contains(".safetensors, .npz or .onnx"));
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
