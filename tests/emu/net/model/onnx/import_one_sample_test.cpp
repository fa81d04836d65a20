// Graphs whose arrays are one sample: no axis is the batch, and what the arrays decide.
#include <limits>

#include "emu/net/forward.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/memory_budget.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::net::import_one_sample_test {
namespace {

using test::ModelWriter;
using Floats = std::vector<float>;

Tensor tensor(Shape shape, Floats values) {
  Tensor out(std::move(shape));
  out.data = std::move(values);
  return out;
}

/// The first output for these arrays, in ONNX's order, and what the import tells.
struct Run {
  std::map<std::string, Tensor> arrays;

  ImportedModel import(const ModelWriter& writer, std::int64_t opset = 17) const {
    ImportOptions options;
    options.one_sample = true;
    for (const auto& [name, array] : arrays) {
      options.input_shapes[name] = array.shape;
      options.arrays[name] = &array;
    }
    return writer.import(opset, options);
  }

  Tensor operator()(const ModelWriter& writer, std::int64_t opset = 17) const {
    const ImportedModel model = import(writer, opset);
    std::vector<Tensor> inputs;
    for (const OnnxPort& port : model.inputs) {
      CHECK(port.batch_axis == kNoBatch);
      inputs.push_back(arrays.at(port.name));
      inputs.back().shape.insert(inputs.back().shape.begin(), 1);
    }
    Numerics numerics;
    Tensor y = forward(model.graph, inputs, numerics);
    REQUIRE(y.shape.at(0) == 1);
    y.shape.erase(y.shape.begin());
    return y;
  }
};

TEST_CASE("any axis of one sample may be summed over, cut and joined", "[fast]") {
  ModelWriter writer;
  writer.input("x", {2, 3}).input("y", {1, 3});
  writer.node("Concat", {"x", "y"}, {"both"}, {test::attribute("axis", std::int64_t{0})});
  writer.node("ReduceSum", {"both"}, {"sum"}, {test::attribute("keepdims", std::int64_t{0})});
  writer.output("sum");
  const Run run{{{"x", tensor({2, 3}, {1, 2, 3, 4, 5, 6})}, {"y", tensor({1, 3}, {7, 8, 9})}}};
  const Tensor sum = run(writer, 11);
  CHECK(sum.shape == Shape{});
  CHECK(sum.data == Floats{45});
}

TEST_CASE("what decides sizes counts with its inputs", "[fast]") {
  constexpr std::int64_t kLarge = 1 << 20;
  ModelWriter writer;
  writer.input("x", {kLarge}).floats("one", {1}, {1});
  writer.node("ReduceMax", {"x"}, {"most"}, {test::attribute("keepdims", std::int64_t{1})});
  writer.node("Cast", {"most"}, {"size"}, {test::attribute("to", std::int64_t{7})});
  writer.node("Expand", {"one", "size"}, {"y"}).output("y");
  const Run run{{{"x", tensor({kLarge}, Floats(kLarge, 3))}}};
  CHECK(run(writer, 13).shape == Shape{3});
  // The array takes 4 MiB, its view as much again.
  const test::MemoryBudget budget(6 << 20);
  CHECK_THROWS_WITH(run.import(writer, 13),
                    Catch::Contains("what decides sizes") && Catch::Contains("--memory"));
}

TEST_CASE("weights, axes and shapes may be inputs of the run", "[fast]") {
  ModelWriter writer;
  writer.input("x", {1, 1, 2, 2}).input("w", {1, 1, 2, 2}).input("shape", {1}, 7);
  writer.node("Conv", {"x", "w"}, {"c"}).node("Reshape", {"c", "shape"}, {"y"}).output("y");
  const Run run{{{"x", tensor({1, 1, 2, 2}, {1, 2, 3, 4})},
                 {"w", tensor({1, 1, 2, 2}, {1, 10, 100, 1000})},
                 {"shape", tensor({1}, {-1})}}};
  const ImportedModel model = run.import(writer);
  const auto weights = model.graph.parameters();
  REQUIRE(weights.size() == 1);  // a weight of the layer, as a recipe sees it
  CHECK(weights[0]->value.data == Floats{1, 10, 100, 1000});
  const Tensor y = run(writer);
  CHECK(y.shape == Shape{1});
  CHECK(y.data == Floats{4321});
}

TEST_CASE("what the arrays decide is told with the node", "[fast]") {
  ModelWriter writer;
  writer.input("x", {4}).node("NonZero", {"x"}, {"places"}, {}, "find").output("places");
  const Run run{{{"x", tensor({4}, {0, 5, 0, 6})}}};
  CHECK(run(writer).data == Floats{1, 3});
  const ImportedModel model = run.import(writer);
  REQUIRE(model.notes.size() == 1);
  CHECK_THAT(model.notes[0], Catch::Contains("1 operator has") && Catch::Contains("'find'"));
}

TEST_CASE("nodes that only decided sizes are not in the graph", "[fast]") {
  ModelWriter writer;
  writer.input("x", {4}).input("n", {1}, 7);
  const std::string two = writer.wholes({2});
  const std::string size = writer.op("Add", {"n", two});
  writer.node("Reshape", {"x", size}, {"y"}).output("y");
  const Run run{{{"x", tensor({4}, {1, 2, 3, 4})}, {"n", tensor({1}, {2})}}};
  const ImportedModel model = run.import(writer);
  for (const Node& node : model.graph.nodes) CHECK(node.op->kind() == "reshape");
  CHECK(model.sources.size() == model.graph.nodes.size());
}

TEST_CASE("losses weigh labels and leave those out that are ignored", "[fast]") {
  const auto loss = [](const char* reduction, bool ignores) {
    ModelWriter writer;
    writer.input("x", {2, 2}).input("label", {2}, 7).input("w", {2});
    std::vector<std::string> attributes{test::text_attribute("reduction", reduction)};
    if (ignores) attributes.push_back(test::attribute("ignore_index", std::int64_t{0}));
    writer.node("NegativeLogLikelihoodLoss", {"x", "label", "w"}, {"y"}, attributes).output("y");
    const Run run{{{"x", tensor({2, 2}, {-1, -2, -4, -8})},
                   {"label", tensor({2}, {0, 1})},
                   {"w", tensor({2}, {3, 5})}}};
    return run(writer).data;
  };
  CHECK(loss("none", false) == Floats{3, 40});
  CHECK(loss("sum", false) == Floats{43});
  CHECK(loss("mean", false) == Floats{43.0f / 8});
  CHECK(loss("none", true) == Floats{0, 40});
  CHECK(loss("mean", true) == Floats{8});
}

TEST_CASE("NaN are no order: equal and last in Unique, last in NonMaxSuppression", "[fast]") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  ModelWriter unique;
  unique.input("x", {5}).node("Unique", {"x"}, {"y", "first", "which", "counts"});
  unique.output("which");
  const Run of_five{{{"x", tensor({5}, {2, kNan, 1, kNan, 2})}}};
  CHECK(of_five(unique).data == Floats{1, 2, 0, 2, 1});
  ModelWriter suppression;
  suppression.input("boxes", {1, 3, 4}).input("scores", {1, 1, 3}).integers("most", {1}, {3});
  suppression.node("NonMaxSuppression", {"boxes", "scores", "most"}, {"places"}).output("places");
  const Run run{{{"boxes", tensor({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5})},
                 {"scores", tensor({1, 1, 3}, {kNan, 0.5f, 0.9f})}}};
  CHECK(run(suppression).data == Floats{0, 0, 2, 0, 0, 1, 0, 0, 0});
}

TEST_CASE("the largest int64 is an end that the arrays may give", "[fast]") {
  ModelWriter writer;
  writer.input("x", {4}).integers("from", {1}, {1}).input("to", {1}, 7);
  writer.node("Slice", {"x", "from", "to"}, {"y"}).output("y");
  const Run run{{{"x", tensor({4}, {1, 2, 3, 4})}, {"to", tensor({1}, {0x1p63f})}}};
  CHECK(run(writer).data == Floats{2, 3, 4});
}

TEST_CASE("loops run as often as they say, and loops in loops not for ever", "[fast]") {
  const auto looped = [](std::int64_t inner, std::int64_t outer) {
    ModelWriter body, rounds, writer;
    body.input("i", {}, 7).input("c", {}, 9).input("v", {1});
    body.node("Add", {"v", "v"}, {"twice"}).node("Identity", {"c"}, {"go"});
    body.output("go").output("twice");
    rounds.input("j", {}, 7).input("d", {}, 9).input("w", {1}).integers("inner", {}, {inner});
    rounds.node("Loop", {"inner", "", "w"}, {"grown"},
                {test::graph_attribute("body", body.graph())});
    rounds.node("Identity", {"d"}, {"on"}).output("on").output("grown");
    writer.input("x", {1}).integers("outer", {}, {outer});
    writer.node("Loop", {"outer", "", "x"}, {"y"}, {test::graph_attribute("body", rounds.graph())});
    writer.output("y");
    return writer;
  };
  const Run run{{{"x", tensor({1}, {1})}}};
  CHECK(run(looped(3, 2)).data == Floats{64});
  CHECK_THROWS_WITH(run.import(looped(10'000, 10'000)),
                    Catch::Contains("at most 200000 nodes in all rounds"));
}

TEST_CASE("sizes that overflow and transforms that mean something else are refused", "[fast]") {
  const Run run{{{"x", tensor({1, 1, 1, 1}, {1})}, {"places", tensor({1, 1, 1, 1}, {0})}}};
  ModelWriter unpool;
  unpool.input("x", {1, 1, 1, 1}).input("places", {1, 1, 1, 1}, 7);
  unpool.node("MaxUnpool", {"x", "places"}, {"y"},
              {test::attribute("kernel_shape", std::vector<std::int64_t>{2, 2}),
               test::attribute("strides", std::vector<std::int64_t>{std::int64_t{1} << 62, 4})});
  CHECK_THROWS_WITH(run.import(unpool.output("y")), Catch::Contains("from 0 to 2^20"));
  ModelWriter transform;
  transform.input("x", {1, 3, 2})
      .node("DFT", {"x"}, {"y"},
            {test::attribute("inverse", std::int64_t{1}),
             test::attribute("onesided", std::int64_t{1})});
  const Run signal{{{"x", Tensor({1, 3, 2})}}};
  CHECK_THROWS_WITH(signal.import(transform.output("y")), Catch::Contains("half of the bins"));
}

TEST_CASE("before operator set 7 the second operand begins at an axis", "[fast]") {
  ModelWriter writer;
  writer.input("x", {1, 2, 2}).input("b", {2});
  writer.node(
      "Add", {"x", "b"}, {"y"},
      {test::attribute("broadcast", std::int64_t{1}), test::attribute("axis", std::int64_t{1})});
  writer.output("y");
  const Run run{{{"x", tensor({1, 2, 2}, {1, 2, 3, 4})}, {"b", tensor({2}, {10, 20})}}};
  CHECK(run(writer, 6).data == Floats{11, 12, 23, 24});
}

}  // namespace
}  // namespace numemu::net::import_one_sample_test
