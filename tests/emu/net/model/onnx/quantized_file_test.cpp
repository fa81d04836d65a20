#include "emu/net/model/onnx/quantized_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/forward.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/files.hpp"

namespace numemu::net::quantized_file_test {
namespace {

using Catch::Contains;
using numemu::test::message_of;
using test::attribute;
using test::ModelWriter;

ImportedFile imported(const std::string& bytes, bool weights_may_be_absent = false,
                      const ImportOptions& options = {}) {
  Bytes copy(static_cast<std::int64_t>(bytes.size()));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  OnnxModel model = parse_onnx("m.onnx", std::move(copy), weights_may_be_absent);
  ImportedModel graph = import_onnx(model, options);
  return {std::move(model), std::move(graph)};
}

std::vector<float> numbers(std::int64_t count, int seed) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>((i * 7919 + seed * 131) % 509 - 254) / 256);
  return out;
}

Tensor some(const Graph& graph, std::int64_t samples) {
  Shape shape = graph.inputs.at(0).shape;
  shape.insert(shape.begin(), samples);
  Tensor x(shape);
  const std::vector<float> values = numbers(x.size(), 1);
  x.data = {values.begin(), values.end()};
  return x;
}

std::vector<float> outputs(const Graph& graph, const Tensor& x) {
  Numerics float32;
  const Tensor y = forward(graph, x, float32);
  return {y.data.begin(), y.data.end()};
}

/// One number, which braces alone do not tell from a number.
std::string list(const std::string& name, std::vector<std::int64_t> values) {
  return attribute(name, values);
}

/// Every weight as codes of the format, with a scale of its own for each output channel, or with
/// one; the weights of the graph become what the codes mean. `block`: with one for each such number
/// of neighbours instead.
OnnxLayers quantize_weights(Graph& graph, const char* format, bool channels,
                            std::int64_t block = 0) {
  OnnxLayers layers;
  const Format& f = find_format(format);
  const auto most = static_cast<float>(largest_value(f));
  for (Node& node : graph.nodes) {
    for (const OpProduct& product : node.op->products()) {
      if (product.weight < 0) continue;
      Tensor& weight = node.op->parameters()[product.weight].value;
      const std::int64_t count = channels ? weight.dim(0) : 1, each = weight.size() / count;
      OnnxOperand operand;
      operand.format = &f;
      if (block > 0) operand.blocks = {.line = weight.shape.back(), .size = block};
      for (std::int64_t i = 0; i < weight.size(); ++i) {
        const std::int64_t group = block > 0 ? operand.blocks->block_of(i) : i / each;
        // Powers of two that differ between channels, so that a mistaken axis shows.
        if (group == std::ssize(operand.scales))
          operand.scales.push_back(std::ldexp(1.0f, static_cast<int>(group % 3) - 5));
        const float scale = operand.scales[static_cast<std::size_t>(group)];
        float& w = weight.data[i];
        const float q = std::fmin(std::fmax(std::rint(w / scale), -most), most);
        operand.codes.push_back(
            static_cast<std::uint16_t>(static_cast<std::int32_t>(q) & ((1 << f.bits) - 1)));
        w = q * scale;
      }
      layers[node.name + product.suffix].weight = std::move(operand);
    }
  }
  return layers;
}

/// Convolutions, matrices on either side and both ways round, in the forms of exporters.
std::string products(std::int64_t opset = 13) {
  ModelWriter w;
  w.input("pixels", {-1, 4, 6, 6});
  w.floats("conv.weight", {6, 2, 3, 3}, numbers(108, 2)).floats("conv.bias", {6}, numbers(6, 3));
  w.node("Conv", {"pixels", "conv.weight", "conv.bias"}, {"a"},
         {attribute("group", std::int64_t{2}), attribute("pads", {1, 1, 1, 1})}, "conv");
  w.floats("up.weight", {6, 5, 2, 2}, numbers(120, 4));
  w.node("ConvTranspose", {"a", "up.weight"}, {"b"}, {attribute("strides", {2, 2})}, "up");
  w.node("GlobalAveragePool", {"b"}, {"c"}, {}, "pool");
  w.node("Flatten", {"c"}, {"d"}, {}, "flat");
  w.floats("one.weight", {5, 7}, numbers(35, 5)).floats("one.bias", {7}, numbers(7, 6));
  w.node("Gemm", {"d", "one.weight", "one.bias"}, {"e"}, {attribute("alpha", 0.5f)}, "one");
  w.floats("two.weight", {4, 7}, numbers(28, 7));
  w.node("Gemm", {"e", "two.weight"}, {"f"}, {attribute("transB", std::int64_t{1})}, "two");
  w.floats("three", {4, 3}, numbers(12, 8));
  w.node("MatMul", {"f", "three"}, {"y"}, {}, "three");
  w.output("y");
  return w.file(opset);
}

TEST_CASE("weights as codes mean the same in the file's own order and names", "[fast]") {
  for (const bool channels : {false, true}) {
    INFO(channels);
    const ImportedFile file = imported(products());
    Graph graph = imported(products()).imported.graph;
    OnnxLayers layers = quantize_weights(graph, "int8", channels);
    REQUIRE(layers.size() == 5);
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    const Tensor x = some(graph, 3);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
    CHECK(outputs(file.imported.graph, x) != outputs(graph, x));
    CHECK(back.model.graph.inputs[0].name == "pixels");
    CHECK(back.model.graph.outputs[0].name == "y");
    CHECK(back.model.opset == 13);
    std::map<std::string_view, int> count;
    for (const OnnxNode& node : back.model.graph.nodes) ++count[node.op_type];
    CHECK(count == std::map<std::string_view, int>{{"Conv", 1},
                                                   {"ConvTranspose", 1},
                                                   {"DequantizeLinear", 5},
                                                   {"Flatten", 1},
                                                   {"Gemm", 2},
                                                   {"GlobalAveragePool", 1},
                                                   {"MatMul", 1}});
    for (const OnnxTensor& tensor : back.model.graph.initializers)
      CHECK(tensor.name != "conv.weight");  // nobody reads it any more
  }
}

TEST_CASE("scales of the channels of groups lie on no axis of a transposed convolution", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 4, 3, 3}).floats("up.weight", {4, 3, 2, 2}, numbers(48, 1));
  w.node("ConvTranspose", {"x", "up.weight"}, {"y"}, {attribute("group", std::int64_t{2})}, "up");
  w.output("y");
  for (const bool channels : {false, true}) {
    INFO(channels);
    Graph graph = w.import().graph;
    const OnnxLayers layers = quantize_weights(graph, "int8", channels);
    const ImportedFile back = imported(quantized_file(imported(w.file()), graph, layers));
    const Tensor x = some(graph, 2);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
  }
}

TEST_CASE("activations are quantized before the node that multiplies them", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 3, 4});
  w.node("Transpose", {"x"}, {"t"}, {attribute("perm", {0, 2, 1})}, "turn");
  w.node("MatMul", {"x", "t"}, {"y"}, {}, "scores");
  w.output("y");
  const ImportedFile file = imported(w.file());
  const OnnxOperand coarse{.format = &find_format("int8"), .scales = {0.25f}};
  const OnnxOperand finer{.format = &find_format("int8"), .scales = {1 / 64.0f}, .zero_point = 3};
  OnnxLayers layers;
  layers["scores"] = {.activation = coarse, .second = finer};
  const ImportedFile back = imported(quantized_file(file, file.imported.graph, layers));
  const Tensor x = some(file.imported.graph, 2);
  std::vector<float> want;
  for (std::int64_t s = 0; s < 2; ++s) {
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < 4; ++k) {
          // Multiples of 2^-8 below 1: every product and sum is exact.
          const float a = std::rint(x.data[(s * 3 + i) * 4 + k] * 4) / 4;
          const float b = std::rint(x.data[(s * 3 + j) * 4 + k] * 64) / 64;
          sum += a * b;
        }
        want.push_back(sum);
      }
    }
  }
  CHECK(outputs(back.imported.graph, x) == want);
}

TEST_CASE("attributes become inputs where the types need a later operator set", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 6, 4}).floats("m", {4, 4}, numbers(16, 1));
  w.node("MatMul", {"x", "m"}, {"a"}, {}, "layer");
  w.node("Clip", {"a"}, {"b"}, {attribute("min", -0.5f), attribute("max", 0.75f)}, "clip");
  w.node("Slice", {"b"}, {"c"}, {list("starts", {1}), list("ends", {5}), list("axes", {1})},
         "slice");
  w.node("Pad", {"c"}, {"d"}, {attribute("pads", {0, 1, 0, 0, 0, 0}), attribute("value", 2.0f)},
         "pad");
  w.node("Unsqueeze", {"d"}, {"e"}, {list("axes", {1})}, "unsqueeze");
  w.node("Squeeze", {"e"}, {"f"}, {list("axes", {1})}, "squeeze");
  w.node("Split", {"f"}, {"g", "h"},
         {attribute("axis", std::int64_t{1}), attribute("split", {2, 3})}, "split");
  w.node("Split", {"h"}, {"i", "j"}, {attribute("axis", std::int64_t{2})}, "halves");
  w.node("Softmax", {"g"}, {"k"}, {attribute("axis", std::int64_t{2})}, "soft");
  w.node("ReduceMean", {"i"}, {"l"}, {list("axes", {1})}, "mean");
  w.node("ReduceSum", {"j"}, {"m2"}, {list("axes", {1})}, "sum");
  w.node("ReduceMax", {"k"}, {"n"}, {list("axes", {1})}, "max");
  w.node("Concat", {"l", "m2", "n"}, {"y"}, {attribute("axis", std::int64_t{2})}, "join");
  w.output("y");
  const ImportedFile file = imported(w.file(9));
  Graph graph = w.import(9).graph;
  for (const auto& [format, opset] : {std::pair("int8", 13), {"int4", 21}}) {
    INFO(format);
    const OnnxLayers layers = quantize_weights(graph, format, false);
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    CHECK(back.model.opset == opset);
    const Tensor x = some(graph, 2);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
  }
}

/// Pixels, a pointwise convolution, and the node of set `opset`, whose further inputs are
/// constants.
struct Renamed {
  std::string op;
  std::int64_t opset;
  std::vector<std::string> attributes;
  std::vector<std::pair<Shape, std::vector<float>>> inputs = {};
};

TEST_CASE("nodes with other names, defaults or subgraphs in a later set mean the same", "[fast]") {
  const std::vector<float> scales = {1, 1, 2, 2}, grid = numbers(18, 9);
  const std::string linear = test::text_attribute("mode", "linear"),
                    bilinear = test::text_attribute("mode", "bilinear"),
                    nearest = test::text_attribute("mode", "nearest");
  const Renamed cases[] = {
      {"Hardmax", 11, {attribute("axis", std::int64_t{-1})}},
      {"Upsample", 9, {nearest}, {{{4}, scales}}},
      {"Upsample", 9, {linear}, {{{4}, scales}}},
      {"Resize", 10, {linear}, {{{4}, scales}}},
      {"GridSample", 16, {bilinear}, {{{1, 3, 3, 2}, grid}}},
      {"GridSample", 16, {nearest}, {{{1, 3, 3, 2}, grid}}},
      {"RoiAlign",
       10,
       {attribute("output_height", std::int64_t{2}), attribute("output_width", std::int64_t{2}),
        attribute("sampling_ratio", std::int64_t{2})},
       {{{2, 4}, {0.5f, 1, 4, 4.5f, 0, 0, 3, 5}}}},
  };
  for (const Renamed& each : cases) {
    INFO(each.op << " " << each.opset << " " << each.attributes.at(0));
    ModelWriter w;
    w.input("pixels", {1, 4, 6, 6}).floats("m", {4, 4, 1, 1}, numbers(16, 1));
    w.node("Conv", {"pixels", "m"}, {"a"}, {}, "layer");
    std::vector<std::string> reads = {"a"};
    for (const auto& [dims, values] : each.inputs)
      w.floats(reads.emplace_back("c" + std::to_string(reads.size())), dims, values);
    if (each.op == "RoiAlign") w.integers(reads.emplace_back("of"), {2}, {0, 0});
    w.node(each.op, reads, {"y"}, each.attributes, "last");
    w.output("y");
    ImportOptions whole;
    whole.one_sample = true;
    const ImportedFile file = imported(w.file(each.opset), false, whole);
    Graph graph = w.import(each.opset, whole).graph;
    for (const auto& [format, opset] : {std::pair("int8", 13), {"int4", 21}}) {
      INFO(format);
      const OnnxLayers layers = quantize_weights(graph, format, false);
      const ImportedFile back = imported(quantized_file(file, graph, layers), false, whole);
      CHECK(back.model.opset == std::max<std::int64_t>(opset, each.opset));
      const Tensor x = some(graph, 1);
      CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
    }
  }
}

TEST_CASE("nodes of a subgraph are raised with the file", "[fast]") {
  ModelWriter body;
  body.input("i", {}, 7).input("go", {}, 9).input("v", {-1, 6, 4});
  body.node("Identity", {"go"}, {"on"});
  body.node("ReduceMean", {"v"}, {"mean"}, {list("axes", {2})}, "inner mean");
  body.node("Sub", {"v", "mean"}, {"w"});
  body.output("on").output("w");
  ModelWriter w;
  w.input("x", {-1, 6, 4}).floats("m", {4, 4}, numbers(16, 1));
  w.integers("times", {}, {2});
  w.node("MatMul", {"x", "m"}, {"a"}, {}, "layer");
  w.node("Loop", {"times", "", "a"}, {"y"}, {test::graph_attribute("body", body.graph())}, "loop");
  w.output("y");
  const ImportedFile file = imported(w.file(13));
  Graph graph = w.import(13).graph;
  const OnnxLayers layers = quantize_weights(graph, "int4", false);
  const std::string raised = quantized_file(file, graph, layers);
  const ImportedFile back = imported(raised);
  CHECK(back.model.opset == 21);
  const OnnxNode& loop = *std::ranges::find(back.model.graph.nodes, "Loop", &OnnxNode::op_type);
  const OnnxGraph inner = read_subgraph(back.model, loop, "body");
  const OnnxNode& mean = *std::ranges::find(inner.nodes, "ReduceMean", &OnnxNode::op_type);
  CHECK(mean.inputs.size() == 2);
  CHECK(mean.find("axes") == nullptr);
  const Tensor x = some(graph, 2);
  CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
}

TEST_CASE("a node that a later operator set cannot say is named", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 6, 4}).floats("m", {4, 4}, numbers(16, 1));
  w.node("MatMul", {"x", "m"}, {"a"}, {}, "layer");
  w.node("Softmax", {"a"}, {"y"}, {attribute("axis", std::int64_t{1})}, "both");
  w.output("y");
  Graph graph = w.import(11).graph;
  const OnnxLayers layers = quantize_weights(graph, "int8", false);
  CHECK_THAT(message_of([&] { quantized_file(imported(w.file(11)), graph, layers); }),
             Contains("node 'both' (Softmax)") && Contains("operator set 11 to 13"));
}

TEST_CASE("parameters that training changed replace the file's", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 3, 4, 4}).floats("c.weight", {2, 3, 1, 1}, numbers(6, 1));
  w.floats("c.bias", {2}, numbers(2, 2));
  w.node("Conv", {"x", "c.weight", "c.bias"}, {"a"}, {}, "c");
  w.floats("bn.weight", {2}, {1, 2}).floats("bn.bias", {2}, {0.5, 0.25});
  w.floats("bn.mean", {2}, {0.125, 0}).floats("bn.var", {2}, {1, 4});
  w.node("BatchNormalization", {"a", "bn.weight", "bn.bias", "bn.mean", "bn.var"}, {"b"}, {}, "bn");
  w.node("Flatten", {"b"}, {"d"}, {}, "flat");
  w.floats("f.weight", {32, 3}, numbers(96, 4));
  w.node("MatMul", {"d", "f.weight"}, {"e"}, {}, "f");
  w.floats("shift", {3}, {1, 2, 3});
  w.node("Add", {"e", "shift"}, {"y"}, {}, "add").output("y");
  const ImportedFile file = imported(w.file());
  Graph graph = w.import().graph;
  int seed = 10;
  for (Parameter* parameter : graph.parameters()) {
    const std::vector<float> changed = numbers(parameter->value.size(), ++seed);
    for (std::size_t i = 0; i < changed.size(); ++i)
      parameter->value.data[i] = std::fabs(changed[i]) + 0.5f;
  }
  const Tensor x = some(graph, 2);
  SECTION("in float32") {
    const ImportedFile back = imported(quantized_file(file, graph, {}));
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
    CHECK(back.model.graph.nodes.size() == file.model.graph.nodes.size());
  }
  SECTION("as codes") {
    const OnnxLayers layers = quantize_weights(graph, "int8", true);
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
  }
}

TEST_CASE("folded batch normalisation leaves the file, and its result keeps its name", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 3, 4, 4}).floats("c.weight", {2, 3, 1, 1}, numbers(6, 1));
  w.node("Conv", {"x", "c.weight"}, {"a"}, {}, "c");
  const auto norm = [&](const std::string& name, const std::string& in, const std::string& out) {
    w.floats(name + ".weight", {2}, {1, 2}).floats(name + ".bias", {2}, {0.5, 0.25});
    w.floats(name + ".mean", {2}, {0.125, 0}).floats(name + ".var", {2}, {1, 4});
    w.node("BatchNormalization",
           {in, name + ".weight", name + ".bias", name + ".mean", name + ".var"}, {out}, {}, name);
  };
  norm("bn", "a", "b");
  w.node("GlobalAveragePool", {"b"}, {"p"}, {}, "pool");
  w.node("Flatten", {"p"}, {"d"}, {}, "flat");
  w.floats("f.weight", {2, 2}, numbers(4, 4));
  w.node("MatMul", {"d", "f.weight"}, {"e"}, {}, "f");
  norm("last", "e", "y");
  w.output("y");
  for (const bool codes : {false, true}) {
    INFO(codes);
    const ImportedFile file = imported(w.file());
    Graph graph = w.import().graph;
    REQUIRE(fold_batch_norm(graph) == 2);
    const OnnxLayers layers = codes ? quantize_weights(graph, "int8", true) : OnnxLayers();
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    const Tensor x = some(graph, 2);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
    CHECK(back.model.graph.outputs[0].name == "y");
    for (const OnnxNode& node : back.model.graph.nodes) CHECK(node.op_type != "BatchNormalization");
    for (const OnnxTensor& tensor : back.model.graph.initializers) CHECK(tensor.name != "bn.mean");
  }
}

/// A recurrent node between two views, and a linear layer; `directions`: 1 or 2.
std::string recurrent(const char* op, std::int64_t gates, std::int64_t directions,
                      const std::vector<std::string>& attributes) {
  constexpr std::int64_t kIn = 3, kHidden = 4;
  ModelWriter w;
  w.input("x", {-1, 5, kIn});
  w.node("Transpose", {"x"}, {"t"}, {attribute("perm", std::vector<std::int64_t>{1, 0, 2})});
  const std::int64_t rows = gates * kHidden;
  w.floats("W", {directions, rows, kIn}, numbers(directions * rows * kIn, 1));
  w.floats("R", {directions, rows, kHidden}, numbers(directions * rows * kHidden, 2));
  w.floats("B", {directions, 2 * rows}, numbers(directions * 2 * rows, 3));
  std::vector<std::string> all = attributes;
  all.push_back(attribute("hidden_size", kHidden));
  if (directions == 2) all.push_back(test::text_attribute("direction", "bidirectional"));
  w.node(op, {"t", "W", "R", "B"}, {"h"}, all, "cell");
  w.node("Transpose", {"h"}, {"y"}, {attribute("perm", std::vector<std::int64_t>{2, 0, 1, 3})});
  w.output("y");
  return w.file();
}

TEST_CASE("recurrent nodes have their weights as codes, gate by gate", "[fast]") {
  const std::vector<std::string> after = {attribute("linear_before_reset", std::int64_t{1})};
  for (const std::string& bytes :
       {recurrent("LSTM", 4, 1, {}), recurrent("LSTM", 4, 2, {}), recurrent("GRU", 3, 2, after),
        recurrent("GRU", 3, 1, {}), recurrent("RNN", 1, 2, {})}) {
    for (const bool channels : {false, true}) {
      INFO(bytes.size() << " " << channels);
      const ImportedFile file = imported(bytes);
      Graph graph = imported(bytes).imported.graph;
      const OnnxLayers layers = quantize_weights(graph, "int8", channels);
      CHECK(layers.size() >= 2);
      const ImportedFile back = imported(quantized_file(file, graph, layers));
      const Tensor x = some(graph, 2);
      CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
      CHECK(outputs(file.imported.graph, x) != outputs(graph, x));
    }
  }
}

TEST_CASE("parameters of recurrent nodes that training changed replace the file's", "[fast]") {
  const std::string bytes = recurrent("LSTM", 4, 2, {});
  const ImportedFile file = imported(bytes);
  Graph graph = imported(bytes).imported.graph;
  for (Parameter* parameter : graph.parameters())
    for (std::int64_t i = 0; i < parameter->value.size(); ++i) parameter->value.data[i] *= 0.5f;
  const ImportedFile back = imported(quantized_file(file, graph, {}));
  const Tensor x = some(graph, 2);
  CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
}

TEST_CASE("states of recurrent nodes and inputs of two scales", "[fast]") {
  const std::string bytes = recurrent("LSTM", 4, 2, {});
  const ImportedFile file = imported(bytes);
  const Graph& graph = file.imported.graph;
  OnnxOperand eighth;
  eighth.format = &find_format("int8");
  eighth.scales = {0.125f};
  OnnxLayers layers;
  layers["cell.input"].activation = eighth;
  layers["cell.reverse.input"].activation = eighth;
  layers["cell.recurrent"].activation = eighth;
  const std::string written = quantized_file(file, graph, layers);
  const ImportedFile back = imported(written);
  std::int64_t quantizers = 0;
  for (const OnnxNode& node : back.model.graph.nodes)
    quantizers += node.op_type == "QuantizeLinear";
  CHECK(quantizers == 1);
  CHECK(states_in_float32(graph, layers) == std::vector<std::string>{"cell.recurrent"});
  layers["cell.reverse.input"].activation->scales = {0.25f};
  CHECK_THAT(message_of([&] { quantized_file(file, graph, layers); }),
             Contains("cell.reverse: an input quantized in one direction otherwise"));
}

TEST_CASE("the constant operand of an Einsum and vectors are weights", "[fast]") {
  struct Case {
    const char* equation;
    Shape dims;
    bool left;
  };
  for (const Case& each :
       {Case{"bij,jk->bik", {4, 5}, false}, Case{"bij,kj->bik", {5, 4}, false},
        Case{"kj,bij->bik", {5, 4}, true}, Case{"bij,jkl->bikl", {4, 5, 2}, false},
        Case{"bij,jk", {4, 5}, false}, Case{"...ij,jk->...ik", {4, 5}, false}}) {
    INFO(each.equation);
    ModelWriter w;
    w.input("x", {-1, 6, 4}).floats("m", each.dims, numbers(element_count(each.dims), 1));
    const std::vector<std::string> in =
        each.left ? std::vector<std::string>{"m", "x"} : std::vector<std::string>{"x", "m"};
    w.node("Einsum", in, {"y"}, {test::text_attribute("equation", each.equation)}, "sum");
    w.output("y");
    Graph graph = w.import().graph;
    const OnnxLayers layers = quantize_weights(graph, "int8", true);
    REQUIRE(layers.size() == 1);
    const ImportedFile back = imported(quantized_file(imported(w.file()), graph, layers));
    const Tensor x = some(graph, 2);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
  }
  ModelWriter w;
  w.input("x", {-1, 6, 4}).floats("v", {4}, numbers(4, 1));
  w.node("MatMul", {"x", "v"}, {"y"}, {}, "dot").output("y");
  Graph graph = w.import().graph;
  const OnnxLayers layers = quantize_weights(graph, "int8", true);
  REQUIRE(layers.size() == 1);
  const ImportedFile back = imported(quantized_file(imported(w.file()), graph, layers));
  const Tensor x = some(graph, 2);
  CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
}

TEST_CASE("factors of a Gemm that the importer multiplies by stay", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 4}).floats("b", {4, 3}, numbers(12, 1));
  w.node("Gemm", {"x", "b"}, {"p"}, {}, "one");
  w.node("Transpose", {"p"}, {"t"}, {list("perm", {1, 0})});
  w.node("Gemm", {"t", "b"}, {"q"},
         {attribute("alpha", 2.0f), attribute("transA", std::int64_t{1}),
          attribute("transB", std::int64_t{1})},
         "two");
  w.output("q");
  const ImportedFile file = imported(w.file());
  Graph graph = imported(w.file()).imported.graph;
  const OnnxLayers layers = quantize_weights(graph, "int8", true);
  REQUIRE(layers.size() == 2);
  const ImportedFile back = imported(quantized_file(file, graph, layers));
  const Tensor x = some(graph, 2);
  CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
}

TEST_CASE("weights in blocks keep a scale for each block of the file's axis", "[fast]") {
  const ImportedFile file = imported(products());
  for (const char* format : {"int4", "int8"}) {
    INFO(format);
    Graph graph = imported(products()).imported.graph;
    OnnxLayers layers = quantize_weights(graph, format, false, 3);
    std::erase_if(layers, [](const auto& layer) { return layer.first == "up"; });
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    const Tensor x = some(graph, 2);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
    CHECK(back.model.opset == 21);
  }
}

std::map<std::string_view, int> operators(const ImportedFile& file) {
  std::map<std::string_view, int> count;
  for (const OnnxNode& node : file.model.graph.nodes) ++count[node.op_type];
  return count;
}

TEST_CASE("products by int4 in blocks of a power of two become MatMulNBits", "[fast]") {
  const auto file_of = [](float beta) {
    ModelWriter w;
    w.input("x", {-1, 3, 40}).floats("one", {40, 20}, numbers(800, 1));
    w.node("MatMul", {"x", "one"}, {"a"}, {}, "one");
    w.node("Flatten", {"a"}, {"b"}, {}, "flat");
    w.floats("two.weight", {7, 60}, numbers(420, 2)).floats("two.bias", {7}, numbers(7, 3));
    w.node(
        "Gemm", {"b", "two.weight", "two.bias"}, {"y"},
        {attribute("transB", std::int64_t{1}), attribute("alpha", 0.5f), attribute("beta", beta)},
        "two");
    return w.output("y").file(13);
  };
  for (const bool zeros : {false, true}) {
    INFO(zeros);
    const ImportedFile file = imported(file_of(1));
    Graph graph = imported(file_of(1)).imported.graph;
    OnnxLayers layers = quantize_weights(graph, "int4", false, 16);
    REQUIRE(layers.size() == 2);
    for (Node& node : graph.nodes) {
      if (!zeros || node.op->products().empty()) continue;
      OnnxOperand& weight = *layers.at(node.name).weight;
      for (std::size_t b = 0; b < weight.scales.size(); ++b)
        weight.blocks->zero_points.push_back(static_cast<int>(b % 7) - 3);
      Tensor& values = node.op->parameters()[0].value;
      for (std::int64_t i = 0; i < values.size(); ++i) {
        const auto b = static_cast<std::size_t>(weight.blocks->block_of(i));
        values.data[i] -= static_cast<float>(weight.blocks->zero_points[b]) * weight.scales[b];
      }
    }
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    const Tensor x = some(graph, 2);
    CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
    CHECK(back.model.opset == 13);
    CHECK(operators(back) ==
          std::map<std::string_view, int>{{"Add", 1}, {"Flatten", 1}, {"MatMulNBits", 2}});
    // Without zero points those are 8.
    for (const OnnxNode& node : back.model.graph.nodes)
      if (node.op_type == "MatMulNBits") CHECK(node.inputs.size() == (zeros ? 4 : 3));
  }
  // A factor of the bias, which MatMulNBits has not.
  const ImportedFile file = imported(file_of(0.5f));
  Graph graph = imported(file_of(0.5f)).imported.graph;
  const OnnxLayers layers = quantize_weights(graph, "int4", false, 16);
  const ImportedFile back = imported(quantized_file(file, graph, layers));
  const Tensor x = some(graph, 2);
  CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
  CHECK(operators(back)["MatMulNBits"] == 1);
  CHECK(operators(back)["Gemm"] == 1);
}

TEST_CASE("blocks across the axes of a convolution are those of a matrix", "[fast]") {
  const auto file_of = [] {
    ModelWriter w;
    w.input("x", {-1, 4, 6, 6}).floats("conv.weight", {6, 2, 3, 3}, numbers(108, 2));
    w.node("Conv", {"x", "conv.weight"}, {"y"}, {attribute("group", std::int64_t{2})}, "conv");
    return w.output("y").file(13);
  };
  Graph graph = imported(file_of()).imported.graph;
  OnnxLayers layers;
  Tensor& weight = graph.nodes.back().op->parameters()[0].value;
  REQUIRE(weight.shape == Shape{6, 3, 3, 2});
  const Shape shape = std::exchange(weight.shape, {6, 18});
  layers = quantize_weights(graph, "int4", false, 16);
  weight.shape = shape;
  REQUIRE(layers.size() == 1);
  const ImportedFile back = imported(quantized_file(imported(file_of()), graph, layers));
  const Tensor x = some(graph, 2);
  CHECK(outputs(back.imported.graph, x) == outputs(graph, x));
}

TEST_CASE("products of integers whose scales are computed become MatMulInteger and ConvInteger",
          "[fast]") {
  const auto file_of = [] {
    ModelWriter w;
    w.input("x", {-1, 4, 5, 5});
    w.floats("conv.weight", {6, 2, 3, 3}, numbers(108, 2)).floats("conv.bias", {6}, numbers(6, 3));
    w.node("Conv", {"x", "conv.weight", "conv.bias"}, {"a"},
           {attribute("group", std::int64_t{2}), attribute("pads", {1, 1, 1, 1})}, "conv");
    w.node("Flatten", {"a"}, {"b"}, {}, "flat");
    w.floats("one.weight", {150, 7}, numbers(1050, 5)).floats("one.bias", {7}, numbers(7, 6));
    w.node("Gemm", {"b", "one.weight", "one.bias"}, {"y"}, {}, "one");
    return w.output("y").file(13);
  };
  for (const bool channels : {false, true}) {
    INFO(channels);
    const ImportedFile file = imported(file_of());
    Graph graph = imported(file_of()).imported.graph;
    OnnxLayers layers = quantize_weights(graph, "int8", channels);
    REQUIRE(layers.size() == 2);
    for (auto& [name, layer] : layers) {
      layer.activation = OnnxOperand{.format = &find_format("int8"), .scales = {}};
      layer.activation->scale_of = OnnxScaleOf::sample;
    }
    const ImportedFile back = imported(quantized_file(file, graph, layers));
    std::map<std::string_view, int> count = operators(back);
    CHECK(count["ConvInteger"] == 1);
    CHECK(count["MatMulInteger"] == 1);
    CHECK(count["Conv"] + count["Gemm"] == 0);
    // The same as products of float32 operands that are rounded to integers before.
    const Tensor x = some(graph, 3);
    Numerics float32;
    const auto rounded = [](const Tensor& given) {
      Tensor out = given;
      const std::int64_t each = out.size() / out.dim(0);
      for (std::int64_t s = 0; s < out.dim(0); ++s) {
        float* const row = out.data.data() + s * each;
        float most = 0;
        for (std::int64_t i = 0; i < each; ++i) most = std::fmax(most, std::fabs(row[i]));
        const float scale = most / 127;
        for (std::int64_t i = 0; i < each; ++i) row[i] = std::rint(row[i] / scale) * scale;
      }
      return out;
    };
    Tensor value = rounded(x);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      Graph one;
      one.inputs = {{"x", {value.shape.begin() + 1, value.shape.end()}}};
      one.nodes.push_back(std::move(graph.nodes[i]));
      one.nodes[0].inputs = {0};
      const bool product = !one.nodes[0].op->products().empty();
      value = forward(one, product && i > 0 ? rounded(value) : value, float32);
    }
    const std::vector<float> got = outputs(back.imported.graph, x);
    REQUIRE(std::ssize(got) == value.size());
    // Roundings of float32 alone: 150 products of a sum of at most 64.
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == Approx(value.data[i]).margin(150 * 64 * 0x1p-24));
  }
}

namespace {

/// Quantizes both operands of the one matmul, of which the graph has `constant` as a constant: each
/// input of the file's node has the scale of the side on which the graph has it.
void check_scales_of_sides(const std::string& bytes, std::string_view constant,
                           const ImportOptions& options = {}) {
  const ImportedFile file = imported(bytes, false, options);
  const Graph& graph = file.imported.graph;
  OnnxLayers layers;
  for (const Node& node : graph.nodes) {
    if (node.op->kind() != "matmul") continue;
    OnnxOperand left, right;
    left.format = right.format = &find_format("int8");
    left.scales = {0.25f}, right.scales = {0.5f};
    left.shifted = right.shifted = true;  // no Clip before the quantizer
    layers[node.name] = {.activation = left, .second = right};
  }
  REQUIRE(layers.size() == 1);
  const OnnxModel back = imported(quantized_file(file, graph, layers), false, options).model;
  const auto is_constant = [&](int value) {
    while (value >= static_cast<int>(graph.inputs.size())) {
      const Node& node = graph.nodes[static_cast<std::size_t>(value) - graph.inputs.size()];
      if (node.inputs.empty()) return true;
      value = node.inputs[0];
    }
    return false;
  };
  const auto product = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return node.op->kind() == "matmul"; });
  const bool constant_is_left = is_constant(product->inputs.at(0));
  REQUIRE(constant_is_left != is_constant(product->inputs.at(1)));
  std::map<std::string_view, float> steps;
  for (const OnnxTensor& tensor : back.graph.initializers)
    if (tensor.name.ends_with("_scale")) steps[tensor.name] = to_floats(tensor).at(0);
  int quantizers = 0;
  for (const OnnxNode& node : back.graph.nodes) {
    if (node.op_type != "QuantizeLinear") continue;
    ++quantizers;
    CHECK(steps.at(node.inputs[1]) ==
          ((node.inputs[0] == constant) == constant_is_left ? 0.25f : 0.5f));
  }
  CHECK(quantizers == 2);
}

}  // namespace

TEST_CASE("a constant left operand has the scale of the operand that it is", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 3, 6, 4}).floats("m", {3, 5, 6}, numbers(90, 1));
  w.node("MatMul", {"m", "x"}, {"y"}, {}, "stack").output("y");
  check_scales_of_sides(w.file(), "m");
}

TEST_CASE("so has an operand that is constant once the arrays' shapes are known", "[fast]") {
  for (const bool first : {true, false}) {
    INFO(first);
    ModelWriter w;
    w.input("x", {-1, 6, 6}).floats("m", {1, 6, 6}, numbers(36, 1)).integers("first", {1}, {0});
    w.integers("rows", {2}, {6, 6}).node("Shape", {"x"}, {"shape"});
    w.node("Gather", {"shape", "first"}, {"batch"}, {attribute("axis", std::int64_t{0})});
    w.node("Concat", {"batch", "rows"}, {"all"}, {attribute("axis", std::int64_t{0})});
    w.node("Expand", {"m", "all"}, {"latents"});
    w.node(
        "MatMul",
        first ? std::vector<std::string>{"latents", "x"} : std::vector<std::string>{"x", "latents"},
        {"y"}, {}, "stack");
    w.output("y");
    ImportOptions options;
    options.one_sample = true;
    options.input_shapes["x"] = {4, 6, 6};
    check_scales_of_sides(w.file(), "latents", options);
  }
}

TEST_CASE("what the file cannot say is refused with the layer's name", "[fast]") {
  ModelWriter w;
  w.input("x", {-1, 6, 4}).floats("m", {4, 5}, numbers(20, 1));
  w.node("Einsum", {"x", "m"}, {"y"}, {test::text_attribute("equation", "bij,j...->bi...")}, "sum");
  w.output("y");
  Graph graph = w.import().graph;
  const OnnxLayers layers = quantize_weights(graph, "int8", false);
  REQUIRE(layers.size() == 1);
  CHECK_THAT(message_of([&] { quantized_file(imported(w.file()), graph, layers); }),
             Contains(layers.begin()->first + ": a quantized weight of Einsum cannot be exported"));
  // A sum over m before the product is what the layer quantizes.
  ModelWriter summed;
  summed.input("x", {-1, 3, 4}).floats("v", {4}, numbers(4, 1));
  summed.node("Einsum", {"x", "v"}, {"y"}, {test::text_attribute("equation", "bml,l->bl")}, "sum");
  summed.output("y");
  const ImportedFile of_sum = imported(summed.file());
  OnnxLayers quantized;
  OnnxOperand eighth;
  eighth.format = &find_format("int8");
  eighth.scales = {0.125f};
  for (const Node& node : of_sum.imported.graph.nodes)
    if (!node.op->products().empty()) quantized[node.name].activation = eighth;
  REQUIRE(quantized.size() == 1);
  CHECK_THAT(message_of([&] { quantized_file(of_sum, of_sum.imported.graph, quantized); }),
             Contains("a quantized operand of Einsum cannot be exported"));
  OnnxLayers unknown;
  unknown["lstm.recurrent"].weight = layers.begin()->second.weight;
  CHECK_THAT(message_of([&] { quantized_file(imported(w.file()), graph, unknown); }),
             Contains("lstm.recurrent: quantized operands within a branch"));
}

}  // namespace
}  // namespace numemu::net::quantized_file_test
