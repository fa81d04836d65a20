// Checkpoints with a graph: the network comes back with every bit, and damaged ones are refused.
#include "emu/net/model/onnx/checkpoint.hpp"

#include <limits>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/weights.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::checkpoint_test {
namespace {

using namespace test;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

constexpr std::int64_t kWidth = 72;  // 72 * 72 elements are a large weight

/// Two convolutions and two products; `shared` is a weight and, element by element, a term.
std::string convolutions() {
  ModelWriter writer;
  Weights weights(writer);
  writer.input("x", {-1, 3, 4, 4});
  const auto conv = [&](const std::string& x, const std::string& name, std::int64_t in) {
    return writer.op("Conv", {x, weights(name + ".weight", {kWidth, in, 1, 1}, 0.1f),
                              weights(name + ".bias", {kWidth}, 1)});
  };
  const std::string first = conv(conv("x", "grow", 3), "first", kWidth);
  const std::string shared = weights("shared", {kWidth, kWidth}, 0.1f);
  const std::string flat =
      writer.op("ReduceMean", {first},
                {attribute("axes", Ints{2, 3}), attribute("keepdims", std::int64_t{0})});
  const std::string product = writer.op("MatMul", {flat, shared});
  const std::string table = writer.op("Reshape", {product, writer.wholes({-1, 1, kWidth})});
  const std::string sum = writer.op("Add", {table, shared});
  const std::string last = writer.op("MatMul", {sum, weights("last", {kWidth, kWidth}, 0.1f)});
  writer.node("Relu", {last}, {"y"}).output("y");
  return writer.file();
}

struct Stored {
  Checkpoint checkpoint;
  Graph graph;
  std::string bytes;
};

/// What `train` writes after a step that changed every trained parameter.
Stored trained(const std::string& file) {
  const TemporaryFolder folder;
  write_file(folder / "m.onnx", file);
  Stored out;
  const OnnxModel model = read_onnx(folder / "m.onnx");
  out.bytes = graph_bytes(model);
  out.graph = import_onnx(model).graph;
  for (Parameter* parameter : out.graph.parameters()) {
    if (!parameter->trained) continue;
    for (float& v : parameter->value.data) v = 0.75f * v + 0.01f;
  }
  Checkpoint checkpoint = parameters_of(out.graph);
  checkpoint.metadata = {{"net", "m"}};
  add_graph(checkpoint, out.bytes);
  write_safetensors(folder / "m.safetensors", checkpoint);
  out.checkpoint = read_safetensors(folder / "m.safetensors", true);
  return out;
}

ImportedModel loaded(const Checkpoint& checkpoint) {
  return import_checkpoint(checkpoint, "m.safetensors",
                           [](const OnnxModel&) { return ImportOptions(); });
}

TEST_CASE("a network comes back from its checkpoint with every bit", "[fast]") {
  const std::string file = convolutions();
  const Stored stored = trained(file);
  const ImportedModel again = loaded(stored.checkpoint);
  REQUIRE(again.graph.nodes.size() == stored.graph.nodes.size());
  for (std::size_t i = 0; i < again.graph.nodes.size(); ++i) {
    CHECK(again.graph.nodes[i].name == stored.graph.nodes[i].name);
    CHECK(again.graph.nodes[i].inputs == stored.graph.nodes[i].inputs);
  }
  CHECK(again.graph.name == "m");
  const Tensor x = random_tensor({2, 4, 4, 3}, 1);
  Numerics numerics;
  CHECK(forward(again.graph, x, numerics).data == forward(stored.graph, x, numerics).data);
  // Its parameters alone decide: the file's weights would give something else.
  const TemporaryFolder folder;
  write_file(folder / "m.onnx", file);
  CHECK(forward(import_onnx(read_onnx(folder / "m.onnx")).graph, x, numerics).data !=
        forward(again.graph, x, numerics).data);
}

TEST_CASE("a mask of minus infinity comes back from a checkpoint, tuned or not", "[fast]") {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  ModelWriter writer;
  Weights weights(writer);
  writer.input("x", {-1, 2, 2}).floats("m", {2, 2}, {0, kHidden, 0, 0});
  const std::string scores = writer.op("MatMul", {"x", weights("w", {2, 2}, 1)});
  writer.node("Softmax", {writer.op("Add", {scores, "m"})}, {"y"}).output("y");
  const TemporaryFolder folder;
  write_file(folder / "m.onnx", writer.file());
  const OnnxModel model = read_onnx(folder / "m.onnx");
  const Graph graph = import_onnx(model).graph;
  Checkpoint checkpoint = parameters_of(graph);
  add_tuned_from(checkpoint, graph);
  add_graph(checkpoint, graph_bytes(model));
  write_safetensors(folder / "m.safetensors", checkpoint);
  checkpoint = read_safetensors(folder / "m.safetensors", true);
  Numerics numerics;
  const Tensor x = random_tensor({3, 2, 2}, 1);
  Graph again = loaded(checkpoint).graph;
  CHECK(forward(again, x, numerics).data == forward(graph, x, numerics).data);
  load_tuned_from(again, checkpoint, "m.safetensors");
  CHECK(forward(again, x, numerics).data == forward(graph, x, numerics).data);
  // Weights stay finite, and no constant is NaN.
  const auto refused = [&](const std::string& part, float value, const std::string& text) {
    Checkpoint damaged = checkpoint;
    for (NamedTensor& tensor : damaged.tensors) {
      if (tensor.name.ends_with(part)) tensor.value.data[1] = value;
    }
    CHECK_THROWS_WITH(loaded(damaged), Catch::Contains(text));
  };
  refused(".weight", kHidden, "element 1: expected a finite number, found -inf");
  refused(".value", std::numeric_limits<float>::quiet_NaN(),
          "element 1: expected a number, found nan");
}

TEST_CASE("the output of a folded network is its last value", "[fast]") {
  ModelWriter writer;
  Weights weights(writer);
  writer.input("x", {-1, 3, 4, 4});
  const std::string grown = writer.op(
      "Conv", {"x", weights("c.weight", {kWidth, 3, 1, 1}, 0.1f), weights("c.bias", {kWidth}, 1)});
  const std::string norm = writer.op(
      "BatchNormalization", {grown, weights("scale", {kWidth}, 1), weights("shift", {kWidth}, 1),
                             weights("mean", {kWidth}, 1), weights("variance", {kWidth}, 0.1f, 1)});
  writer.node("Relu", {norm}, {"y"}).output("y");
  const TemporaryFolder folder;
  write_file(folder / "m.onnx", writer.file());
  const OnnxModel model = read_onnx(folder / "m.onnx");
  Graph graph = import_onnx(model).graph;
  fold_batch_norm(graph);
  Checkpoint checkpoint = parameters_of(graph);
  mark_folded(checkpoint);
  add_graph(checkpoint, graph_bytes(model));
  write_safetensors(folder / "m.safetensors", checkpoint);
  const ImportedModel again = loaded(read_safetensors(folder / "m.safetensors", true));
  CHECK(again.graph.nodes.size() == 2);
  CHECK(again.outputs.at(0).value == static_cast<int>(again.graph.value_count()) - 1);
}

TEST_CASE("only large weights that products alone read leave their data behind", "[fast]") {
  const std::string file = convolutions();
  const Stored stored = trained(file);
  // first.weight and last; `shared` is a term, too.
  constexpr std::size_t kSaved = 2 * kWidth * kWidth * sizeof(float);
  CHECK(stored.bytes.size() < file.size() - kSaved + 64);
  CHECK(stored.bytes.size() > file.size() - kSaved - 64);
}

TEST_CASE("graphs of checkpoints that do not fit are refused", "[fast]") {
  const Stored stored = trained(convolutions());
  const auto refused = [&](const Checkpoint& checkpoint, const std::string& text) {
    CHECK_THROWS_WITH(loaded(checkpoint),
                      Catch::StartsWith("m.safetensors") && Catch::Contains(text));
  };
  Checkpoint damaged = stored.checkpoint;
  for (auto& [key, value] : damaged.metadata) {
    if (key == "graph") value = "onnx 2";
  }
  refused(damaged, "expected 'onnx 1', found 'onnx 2'");
  damaged = stored.checkpoint;
  damaged.bytes.clear();
  refused(damaged, "expected a U8 tensor onnx_graph");
  damaged = stored.checkpoint;
  damaged.bytes[0].data.resize(damaged.bytes[0].data.size() / 2);
  refused(damaged, "byte");
  damaged = stored.checkpoint;
  damaged.tensors.resize(2);
  refused(damaged, "exceeds the tensors of the checkpoint");
  damaged = stored.checkpoint;
  damaged.metadata.clear();
  refused(damaged, "expected a checkpoint with a graph");
  // A file of its own must have its data.
  const TemporaryFolder folder;
  write_file(folder / "graph.onnx", stored.bytes);
  CHECK_THROWS_WITH(read_onnx(folder / "graph.onnx"), Catch::Contains("found 0 elements"));
}

}  // namespace
}  // namespace numemu::net::checkpoint_test
