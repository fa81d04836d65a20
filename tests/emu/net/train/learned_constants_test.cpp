// Which constants of a file are parameters; their gradients: import_gradients_test.cpp.
#include "emu/net/train/learned_constants.hpp"

#include <limits>
#include <numeric>
#include <set>

#include "emu/net/ops/views.hpp"
#include "emu/net/train/optimizer.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::net::learned_constants_test {
namespace {

using test::ModelWriter;
using Names = std::vector<std::string>;

std::vector<float> rising(std::int64_t n, float first = 1) {
  std::vector<float> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// [n, 5, 4] times a matrix, behind which constants follow.
ModelWriter product() {
  ModelWriter model;
  model.input("x", {-1, 5, 4}).floats("w", {4, 4}, rising(16)).node("MatMul", {"x", "w"}, {"h"});
  return model;
}

/// Tensors of the file that training changes as constants, in the order of the network.
Names learned(Graph& graph) {
  train_learned_constants(graph);
  Names out;
  for (const Node& node : graph.nodes) {
    const auto* const constant = dynamic_cast<const Constant*>(node.op.get());
    if (constant != nullptr && constant->parameters()[0].trained)
      out.push_back(constant->origin().tensor);
  }
  return out;
}

}  // namespace

TEST_CASE("biases, gains and weights of stacked products are learned", "[fast]") {
  ModelWriter model = product();
  model.floats("bias", {4}, rising(4))
      .floats("gain", {1, 1, 4}, rising(4, 5))
      .floats("shift", {4}, rising(4, 9))
      .floats("divisor", {4}, rising(4, 13))
      .floats("heads", {5, 4, 3}, rising(60))
      .floats("mixed", {5, 3, 2}, rising(30))
      .node("Add", {"bias", "h"}, {"a"})
      .node("Mul", {"a", "gain"}, {"b"})
      .node("Sub", {"b", "shift"}, {"c"})
      .node("Div", {"c", "divisor"}, {"d"})
      .node("Unsqueeze", {"d", model.wholes({2})}, {"e"})
      .node("MatMul", {"e", "heads"}, {"f"})
      .node("Einsum", {"f", "mixed"}, {"y"}, {test::text_attribute("equation", "nijk,ikl->nil")})
      .output("y");
  Graph graph = model.import().graph;
  CHECK(graph.parameter_count() == 16);  // inference and its figures see what they saw
  CHECK(untrained_tensors(graph).names ==
        Names{"bias", "gain", "shift", "divisor", "heads", "mixed"});
  CHECK(learned(graph) == Names{"bias", "gain", "shift", "divisor", "heads", "mixed"});
  CHECK(graph.parameter_count() == 16 + 4 * 4 + 60 + 30);
  CHECK(untrained_tensors(graph).names.empty());
  std::set<std::string> decaying;
  for (const Node& node : graph.nodes) {
    const auto parameters = std::as_const(*node.op).parameters();
    if (!parameters.empty() && decays(parameters[0])) decaying.insert(parameters[0].name);
  }
  CHECK(decaying.size() == 3);  // w, heads and mixed
}

TEST_CASE("constants that may be buffers stay as they are, and are named", "[fast]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::string floats;
  for (const float value : rising(4)) floats += test::words(value);
  ModelWriter model;
  model.input("x", {-1, 5, 4})
      .floats("mean", {4}, rising(4))
      .floats("deviation", {4}, rising(4, 2))
      .floats("position", {1, 5, 4}, rising(20))
      .floats("w", {4, 4}, rising(16))
      .floats("mask", {1, 1, 4}, {0, 0, -kInfinity, 0})
      .floats("halved", {4}, rising(4, 3))
      .floats("number", {1}, {3})
      .node("Sub", {"x", "mean"}, {"a"})
      .node("Div", {"a", "deviation"}, {"b"})
      .node("Add", {"b", "position"}, {"c"})
      .node("MatMul", {"c", "w"}, {"d"})
      .node("Add", {"d", "mask"}, {"e"})
      .node("Div", {"halved", model.number(2)}, {"half"})
      .node("Mul", {"e", "half"}, {"f"})
      .node("Mul", {"f", "number"}, {"g"})
      .node("Constant", {}, {"bias"}, {test::tensor_attribute("value", {4}, 1, floats)})
      .node("Add", {"g", "bias"}, {"y"})
      .output("y");
  Graph graph = model.import().graph;
  CHECK(learned(graph).empty());
  const UntrainedTensors found = untrained_tensors(graph);
  CHECK(found.names == Names{"mean", "deviation", "position", "mask", "halved", "bias"});
  CHECK(found.elements == 4 + 4 + 20 + 4 + 4 + 4);
  CHECK(found.of == found.elements + 16);
}

TEST_CASE("a constant that something else holds, or that exporters merge, is not learned",
          "[fast]") {
  ModelWriter held = product();
  held.floats("v", {4}, rising(4))
      .floats("m", {4, 4}, rising(16, 2))
      .node("Add", {"h", "v"}, {"a"})
      .node("ReduceMean", {"a"}, {"b"},
            {test::attribute("axes", std::vector<std::int64_t>{1}),
             test::attribute("keepdims", std::int64_t{0})})
      .node("Gemm", {"b", "m", "v"}, {"y"})
      .output("y");
  Graph graph = held.import().graph;
  CHECK(learned(graph).empty());
  for (const float last : {1.0f, 2.0f}) {
    ModelWriter twice = product();
    twice.floats("v", {4}, {1, 1, 1, last})
        .node("Add", {"h", "v"}, {"a"})
        .node("Mul", {"a", "v"}, {"y"})
        .output("y");
    Graph own = twice.import().graph;
    CHECK(learned(own) == (last == 1 ? Names() : Names{"v"}));
    CHECK(untrained_tensors(own).names == (last == 1 ? Names{"v"} : Names()));
  }
}

TEST_CASE("a vector along the channels of images stays as it is", "[fast]") {
  ModelWriter model;
  model.input("x", {-1, 3, 4, 4})
      .floats("w", {3, 3, 1, 1}, rising(9))
      .floats("scale", {3, 1, 1}, rising(3))
      .floats("row", {4}, rising(4))
      .node("Conv", {"x", "w"}, {"a"})
      .node("Mul", {"a", "scale"}, {"b"})
      .node("Add", {"b", "row"}, {"y"})
      .output("y");
  Graph graph = model.import().graph;
  CHECK(learned(graph).empty());
  CHECK(untrained_tensors(graph).names == Names{"scale", "row"});
}

}  // namespace numemu::net::learned_constants_test
