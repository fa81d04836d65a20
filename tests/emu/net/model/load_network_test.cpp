// Networks by name, and the message for a file that cannot be read.
#include "emu/net/model/load_network.hpp"

#include <numeric>

#include "emu/net/data/load_dataset.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace numemu::net::load_network_test {
namespace {

TEST_CASE("a reference network comes without weights and fits the data", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const LoadedNetwork network = load_network("mlp", data);
  CHECK(!network.has_weights);
  CHECK(network.graph.name == "mlp");
  CHECK(network.graph.inputs.at(0).shape == data.input_shape());
}

TEST_CASE("unknown names offer the nearest and files are told from names", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  CHECK_THROWS_WITH(load_network("lenett", data), Catch::Contains("'lenet'"));
  CHECK(names_onnx_file("a/b.onnx"));
  CHECK(!names_onnx_file("onnx"));
  CHECK_THROWS_WITH(load_network("no/such/file.onnx", data),
                    Catch::StartsWith("no/such/file.onnx"));
}

/// The network's output for the first test sample of x.npy, whose numbers count from 0.
std::vector<float> output_for(const test::ModelWriter& model, const Shape& image,
                              const std::string& options) {
  const numemu::test::TemporaryFolder folder;
  numemu::test::write_file(folder / "m.onnx", model.file());
  std::vector<float> numbers(static_cast<std::size_t>(element_count(image)));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  Shape shape = image;
  shape.insert(shape.begin(), 1);
  write_npy(folder / "x.npy", ArrayType::float32, shape, numbers.data());
  const Dataset data = load_dataset("npy:x=" + (folder / "x.npy") + options, "");
  const LoadedNetwork network = load_network(folder / "m.onnx", data);
  Targets none;
  Numerics float32;
  return forward(network.graph, data.test_batch(0, 1, none), float32).data;
}

TEST_CASE("a network without convolutions reads images in the order of its file", "[fast]") {
  // Flatten of [c, h, w] counts from 0, whatever order the data set keeps; [2, 2, 2] would fit in
  // both.
  for (const Shape& image : {Shape{1, 3, 2}, Shape{2, 3, 4}, Shape{2, 2, 2}}) {
    test::ModelWriter model;
    model.input("x", {-1, image[0], image[1], image[2]}).node("Flatten", {"x"}, {"y"}).output("y");
    std::vector<float> expected(static_cast<std::size_t>(element_count(image)));
    std::iota(expected.begin(), expected.end(), 0.0f);
    CHECK(output_for(model, image, "") == expected);
    CHECK(output_for(model, image, ",layout=none") == expected);
  }
}

TEST_CASE("a file whose input has the channels last reads them there", "[fast]") {
  // TensorFlow's exports turn images before their convolutions. x [c, h, w] counts from 0.
  test::ModelWriter last;
  last.input("x", {-1, 3, 2, 1}).node("Flatten", {"x"}, {"y"}).output("y");
  CHECK(output_for(last, {1, 3, 2}, "") == std::vector<float>{0, 1, 2, 3, 4, 5});
  test::ModelWriter model;
  model.input("x", {-1, 3, 2, 2})
      .node("Transpose", {"x"}, {"t"},
            {test::attribute("perm", std::vector<std::int64_t>{0, 3, 1, 2})})
      .floats("w", {1, 2, 1, 1}, {1, 100})
      .node("Conv", {"t", "w"}, {"c"})
      .node("Flatten", {"c"}, {"y"})
      .output("y");
  CHECK(output_for(model, {2, 3, 2}, "") == std::vector<float>{600, 701, 802, 903, 1004, 1105});
}

TEST_CASE("convolutions read arrays that the data set does not turn", "[fast]") {
  // One weight per channel: 1 and 100.
  test::ModelWriter model;
  model.input("x", {-1, 2, 2, 2})
      .floats("w", {1, 2, 1, 1}, {1, 100})
      .node("Conv", {"x", "w"}, {"c"})
      .node("Flatten", {"c"}, {"y"})
      .output("y");
  const std::vector<float> expected{400, 501, 602, 703};
  CHECK(output_for(model, {2, 2, 2}, "") == expected);
  CHECK(output_for(model, {2, 2, 2}, ",layout=none") == expected);
}

TEST_CASE("a checkpoint of an earlier version has the network before training in its graph",
          "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const Shape image = data.input_shape();
  const auto checkpoint_of = [&](std::int64_t hidden) {
    const std::int64_t pixels = image[0] * image[1] * image[2];
    test::ModelWriter model;
    model.input("x", {-1, image[2], image[0], image[1]})
        .floats("a", {hidden, image[2], image[0], image[1]},
                std::vector<float>(pixels * hidden, 0.5f))
        .floats("b", {hidden, data.classes()}, std::vector<float>(hidden * data.classes(), 0.5f))
        .node("Conv", {"x", "a"}, {"c"})
        .node("Flatten", {"c"}, {"h"})
        .node("MatMul", {"h", "b"}, {"y"})
        .output("y");
    const std::string file = model.file();
    Bytes bytes(static_cast<std::int64_t>(file.size()));
    std::copy(file.begin(), file.end(), reinterpret_cast<char*>(bytes.data()));
    OnnxModel read = parse_onnx("m.onnx", std::move(bytes));
    const std::string graph = graph_bytes(read);
    Graph trained = import_onnx(std::move(read)).graph;
    for (Parameter* parameter : trained.parameters()) parameter->value.data[0] += 1;
    Checkpoint checkpoint = parameters_of(trained);
    checkpoint.metadata = {{"net", "m"}, {"recipe", "{}"}, {"training", "adam"}};
    add_graph(checkpoint, graph);
    return checkpoint;
  };
  Checkpoint small = checkpoint_of(2);
  const LoadedNetwork network = network_of(small, "x.safetensors", data);
  REQUIRE(network.before);
  CHECK(network.before->name == "m");
  CHECK(network.before->parameters()[0]->value.data[0] == 0.5f);
  CHECK(network.graph.parameters()[0]->value.data[0] == 1.5f);
  // Large weights are not in the graph, and training in float32 has no network before it.
  const Checkpoint large = checkpoint_of(4096);
  CHECK_FALSE(network_of(large, "x.safetensors", data).before);
  std::erase_if(small.metadata, [](const auto& entry) { return entry.first == "recipe"; });
  CHECK_FALSE(network_of(small, "x.safetensors", data).before);
}

}  // namespace
}  // namespace numemu::net::load_network_test
