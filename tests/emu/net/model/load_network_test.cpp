// Networks by name, and the message for a file that cannot be read.
#include "emu/net/model/load_network.hpp"

#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/train/synthetic.hpp"

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
