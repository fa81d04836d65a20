// Operators that an exported file says in another form than the user's: read back by our reader,
// which computes what the recipe does. ONNX Runtime: export_onnxruntime_test.cpp.
#include <algorithm>
#include <cmath>

#include "api/networks.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::export_forms_test {
namespace {

using net::test::attribute;
using net::test::ModelWriter;
using test::Workplace;

std::vector<float> numbers(std::int64_t count, int seed) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>((i * 7919 + seed * 104729) % 257 - 128) / 128 +
                  static_cast<float>(i % 7) * 0.0013f);  // no quotient is a tie
  return out;
}

struct Exported {
  net::OnnxModel file;
  api::Agreement agreement;

  std::int64_t count(std::string_view op) const {
    return std::ranges::count(file.graph.nodes, op, &net::OnnxNode::op_type);
  }
};

Exported exported(const Workplace& w, const std::string& model, const std::string& recipe,
                  const ArrayShape& x) {
  std::int64_t size = 1;
  for (const std::int64_t extent : x) size *= extent;
  const std::string array = w.array("x.npy", x, numbers(size, 3));
  const api::Agreement agreement = api::export_network(
      {.net = model, .recipe = recipe}, {.out = w / "m.onnx", .in = {"x=" + array}}, w.context);
  return {net::read_onnx(w / "m.onnx"), agreement};
}

/// Powers of two as scales: every bit is the recipe's.
const std::string kWeights = R"j({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int4", "scale": "pow2(absmax)"}},
    "layers": [{"match": "DFT*", "roles": {"weight": null}, "optional": true}]})j";
const std::string kDynamic = R"j({"numemu_recipe": 1, "calibrate": {"rule": "dynamic"}, "roles": {
    "weight": {"format": "int8", "scale": "pow2(absmax)"}, "activation": {"format": "int8"}},
    "layers": [{"match": "*.recurrent", "roles": {"activation": null}, "optional": true}]})j";

TEST_CASE("export: DFT of an earlier operator set keeps its axis in a later one", "[fast]") {
  const Workplace w;
  const std::string model = w.file("dft.onnx", ModelWriter()
                                                   .input("x", {-1, 4, 6, 1})
                                                   .floats("w", {2, 2}, numbers(4, 1))
                                                   .node("DFT", {"x"}, {"f"})
                                                   .node("MatMul", {"f", "w"}, {"y"})
                                                   .output("y")
                                                   .file(17));
  const Exported out = exported(w, model, w.file("r.json", kWeights), {3, 4, 6, 1});
  CHECK(out.file.opset == 21);
  CHECK(out.agreement.same_bits == out.agreement.outputs);
  CHECK(out.agreement.outputs > 0);
  for (const net::OnnxNode& node : out.file.graph.nodes)
    if (node.op_type == "DFT") CHECK(node.inputs.size() == 3);
}

TEST_CASE("export: Einsum of three operands is a chain of two", "[fast]") {
  const Workplace w;
  const std::string model =
      w.file("e.onnx", ModelWriter()
                           .input("x", {-1, 4})
                           .floats("a.weight", {4, 5}, numbers(20, 1))
                           .floats("b.weight", {5, 3}, numbers(15, 2))
                           .node("Einsum", {"x", "a.weight", "b.weight"}, {"y"},
                                 {net::test::text_attribute("equation", "ni,ij,jk->nk")}, "three")
                           .output("y")
                           .file());
  const Exported out = exported(w, model, w.file("r.json", kWeights), {3, 4});
  CHECK(out.count("Einsum") == 2);
  CHECK(out.count("DequantizeLinear") == 2);
  CHECK(out.agreement.same_bits == out.agreement.outputs);
}

TEST_CASE("export: dynamic scales of recurrent layers", "[fast]") {
  const Workplace w;
  constexpr std::int64_t kIn = 3, kHidden = 4, kGates = 4 * kHidden;
  const std::string recipe = w.file("r.json", kDynamic);
  const auto lstm = [&](bool batch_first) {
    ModelWriter writer;
    writer.input(
        "x",
        batch_first ? std::vector<std::int64_t>{-1, 5, kIn} : std::vector<std::int64_t>{5, -1, kIn},
        1, "batch");
    writer.floats("W", {1, kGates, kIn}, numbers(kGates * kIn, 1))
        .floats("R", {1, kGates, kHidden}, numbers(kGates * kHidden, 2));
    const std::string x =
        batch_first ? writer.op("Transpose", {"x"}, {attribute("perm", {1, 0, 2})}) : "x";
    writer.node("LSTM", {x, "W", "R"}, {"y", "h"}, {attribute("hidden_size", kHidden)}, "cell")
        .node("Squeeze", {"h", writer.wholes({0})}, {"out"})
        .output("out");
    return w.file("lstm.onnx", writer.file());
  };
  for (const bool batch_first : {true, false}) {
    CAPTURE(batch_first);
    const Exported out = exported(w, lstm(batch_first), recipe,
                                  batch_first ? ArrayShape{6, 5, kIn} : ArrayShape{5, 6, kIn});
    CHECK(out.count("LSTM") == 1);
    CHECK(out.count("ReduceMax") == 1);
    CHECK(out.agreement.outputs == 6 * kHidden);
    // A code times its scale is rounded before the product there, and after it here.
    CHECK(out.agreement.difference <= 1e-5 * out.agreement.largest);
  }
}

TEST_CASE("export: tensors between operators as codes", "[fast]") {
  const Workplace w;
  const std::string model = w.file(
      "edges.onnx",
      ModelWriter()
          .input("x", {-1, 2, 4, 4})
          .floats("c.weight", {3, 2, 3, 3}, numbers(54, 1))
          .floats("c.bias", {3}, numbers(3, 2))
          .floats("d.weight", {3, 3, 1, 1}, numbers(9, 3))
          .floats("fc.weight", {3, 2}, numbers(6, 4))
          .node("Conv", {"x", "c.weight", "c.bias"}, {"c"}, {attribute("pads", {1, 1, 1, 1})})
          .node("Relu", {"c"}, {"r"})
          .node("Conv", {"r", "d.weight"}, {"d"})
          .node("Add", {"d", "r"}, {"sum"}, {}, "sum")
          .node("GlobalAveragePool", {"sum"}, {"g"}, {}, "pool")
          .node("Flatten", {"g"}, {"f"})
          .node("MatMul", {"f", "fc.weight"}, {"y"})
          .output("y")
          .file());
  const auto recipe = [](const std::string& edges) {
    return R"j({"numemu_recipe": 1, "edges": )j" + edges + R"j(, "roles": {
        "weight": {"format": "int8", "scale": "pow2(absmax)"},
        "activation": {"format": "int8", "scale": "pow2(absmax)"}}})j";
  };
  const Exported plain = exported(w, model, w.file("r.json", recipe("null")), {5, 2, 4, 4});
  const Exported out = exported(w, model, w.file("r.json", recipe("\"static\"")), {5, 2, 4, 4});
  // Of what products read: 3; behind Relu, d, sum, pool and the last product with edges.
  CHECK(plain.count("QuantizeLinear") == 3);
  CHECK(out.count("QuantizeLinear") == 8);
  CHECK(out.agreement.same_bits == out.agreement.outputs);
  CHECK(out.agreement.outputs == 10);
  const std::string sums = R"j({"numemu_recipe": 1,
      "edges": {"rule": "static", "requantize": "float"},
      "gemms": {"fprop": {"unit": "intel.emr.vpdpbusds.u8xs8.s32"}},
      "roles": {"weight": {"format": "int8"},
                "activation": {"format": "uint8", "zero_point": "calibrated"}}})j";
  CHECK_THROWS_WITH(exported(w, model, w.file("r.json", sums), {5, 2, 4, 4}),
                    Catch::Contains("edges.requantize"));
}

}  // namespace
}  // namespace numemu::export_forms_test
