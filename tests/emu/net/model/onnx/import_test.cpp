// The import of ONNX graphs: layouts, folding of what exporters write, names, refusals, and the
// network that is shipped for it.
#include "emu/net/model/onnx/import.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "emu/net/data/dataset.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/evaluate.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/memory_budget.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::import_test {
namespace {

using test::ModelWriter;
using Ints = std::vector<std::int64_t>;

Tensor run(const ImportedModel& model, const Tensor& x) {
  Numerics numerics;
  return forward(model.graph, x, numerics);
}

std::vector<float> numbers(std::int64_t count, std::uint32_t identity) {
  return test::random_tensor({count}, identity).data;
}

std::string message_of(const ModelWriter& writer, std::int64_t opset = 13) {
  try {
    writer.import(opset);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a convolution is turned to NHWC and back to ONNX order for what follows", "[fast]") {
  const std::vector<float> w = numbers(2 * 3 * 2 * 2, 1);
  const ImportedModel model = ModelWriter()
                                  .input("image", {-1, 3, 4, 5})
                                  .floats("conv.weight", {2, 3, 2, 2}, w)
                                  .node("Conv", {"image", "conv.weight"}, {"y"},
                                        {test::attribute("strides", Ints{2, 1})}, "/conv/Conv")
                                  .node("Flatten", {"y"}, {"z"})
                                  .output("z")
                                  .import();
  REQUIRE(model.inputs.size() == 1);
  CHECK(model.inputs[0].image);
  CHECK(model.graph.inputs[0].shape == Shape{4, 5, 3});
  CHECK(gemm_layer_names(model.graph) == std::vector<std::string>{"conv"});

  const Tensor x = test::random_tensor({2, 4, 5, 3}, 2);
  const Tensor y = run(model, x);
  REQUIRE(y.shape == Shape{2, 2 * 2 * 4});
  for (int n = 0; n < 2; ++n) {
    for (int o = 0; o < 2; ++o) {
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 4; ++j) {
          double sum = 0;
          for (int c = 0; c < 3; ++c) {
            for (int u = 0; u < 2; ++u) {
              for (int v = 0; v < 2; ++v)
                sum += double{w[((o * 3 + c) * 2 + u) * 2 + v]} *
                       x.data[((n * 4 + 2 * i + u) * 5 + j + v) * 3 + c];
            }
          }
          CHECK(y.data[n * 16 + (o * 2 + i) * 4 + j] == Approx(sum).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("the batch in reshapes stays open however the exporter computes it", "[fast]") {
  // x.view(x.size(0), -1, 4) as Shape, Gather, Unsqueeze and Concat write it.
  const ImportedModel model =
      ModelWriter()
          .input("x", {-1, 6, 8})
          .integers("zero", {}, {0})
          .integers("axes", {1}, {0})
          .integers("minus", {1}, {-1})
          .integers("four", {1}, {4})
          .node("Shape", {"x"}, {"shape"})
          .node("Gather", {"shape", "zero"}, {"batch"}, {test::attribute("axis", std::int64_t{0})})
          .node("Unsqueeze", {"batch", "axes"}, {"batch1"})
          .node("Concat", {"batch1", "minus", "four"}, {"target"},
                {test::attribute("axis", std::int64_t{0})})
          .node("Reshape", {"x", "target"}, {"y"})
          .output("y")
          .import();
  for (const std::int64_t batch : {1, 2, 7}) {
    const Tensor x = test::random_tensor({batch, 6, 8}, 3);
    const Tensor y = run(model, x);
    CHECK(y.shape == Shape{batch, 12, 4});
    CHECK(y.data == x.data);
  }
}

TEST_CASE("a batch that the file fixes is any batch", "[fast]") {
  const ImportedModel model = ModelWriter()
                                  .input("x", {1, 2, 6})
                                  .integers("target", {2}, {1, 12})
                                  .node("Reshape", {"x", "target"}, {"y"})
                                  .output("y")
                                  .import();
  CHECK(run(model, test::random_tensor({5, 2, 6}, 4)).shape == Shape{5, 12});
}

TEST_CASE("Gemm and MatMul become linear layers with and without bias", "[fast]") {
  const std::vector<float> w = numbers(3 * 4, 5), b = numbers(3, 6), v = numbers(3 * 2, 7);
  const ImportedModel model = ModelWriter()
                                  .input("x", {-1, 4})
                                  .floats("fc.weight", {3, 4}, w)
                                  .floats("fc.bias", {3}, b)
                                  .floats("v", {3, 2}, v)
                                  .node("Gemm", {"x", "fc.weight", "fc.bias"}, {"y"},
                                        {test::attribute("transB", std::int64_t{1})})
                                  .node("MatMul", {"y", "v"}, {"z"}, {}, "/head/MatMul")
                                  .output("z")
                                  .import();
  CHECK(gemm_layer_names(model.graph) == std::vector<std::string>{"fc", "head.MatMul"});
  const Tensor x = test::random_tensor({2, 4}, 8);
  const Tensor z = run(model, x);
  for (int n = 0; n < 2; ++n) {
    for (int j = 0; j < 2; ++j) {
      double sum = 0;
      for (int o = 0; o < 3; ++o) {
        double y = b[o];
        for (int i = 0; i < 4; ++i) y += double{w[o * 4 + i]} * x.data[n * 4 + i];
        sum += y * v[o * 2 + j];
      }
      CHECK(z.data[n * 2 + j] == Approx(sum).margin(1e-5));
    }
  }
}

TEST_CASE("a decomposed GELU computes x Phi(x)", "[fast]") {
  const ImportedModel model = ModelWriter()
                                  .input("x", {-1, 5})
                                  .floats("root", {}, {1.4142135381698608f})
                                  .floats("one", {}, {1})
                                  .floats("half", {}, {0.5f})
                                  .node("Div", {"x", "root"}, {"a"})
                                  .node("Erf", {"a"}, {"b"})
                                  .node("Add", {"b", "one"}, {"c"})
                                  .node("Mul", {"x", "c"}, {"d"})
                                  .node("Mul", {"d", "half"}, {"y"})
                                  .output("y")
                                  .import();
  Tensor x({1, 5});
  x.data = {-3, -0.5f, 0, 0.75f, 2};
  const Tensor y = run(model, x);
  for (int i = 0; i < 5; ++i)
    CHECK(y.data[i] ==
          Approx(x.data[i] * (1 + std::erf(x.data[i] / std::sqrt(2.0))) / 2).margin(1e-6));
}

TEST_CASE("constants of channels broadcast over images", "[fast]") {
  const ImportedModel model = ModelWriter()
                                  .input("x", {-1, 2, 3, 3})
                                  .floats("scale", {2, 1, 1}, {2, 3})
                                  .node("Mul", {"x", "scale"}, {"a"})
                                  .node("GlobalAveragePool", {"a"}, {"b"})
                                  .node("Flatten", {"b"}, {"y"})
                                  .output("y")
                                  .import();
  const Tensor y = run(model, Tensor({1, 3, 3, 2}, 1));
  CHECK(y.shape == Shape{1, 2});
  CHECK(y.data == std::vector<float>{2, 3});
}

TEST_CASE("bounds of Clip are inputs or attributes by operator set", "[fast]") {
  const ImportedModel inputs = ModelWriter()
                                   .input("x", {-1, 3})
                                   .floats("low", {}, {0})
                                   .floats("high", {}, {6})
                                   .node("Clip", {"x", "low", "high"}, {"y"})
                                   .output("y")
                                   .import();
  const ImportedModel attributes =
      ModelWriter()
          .input("x", {-1, 3})
          .node("Clip", {"x"}, {"y"}, {test::attribute("min", 0.0f), test::attribute("max", 6.0f)})
          .output("y")
          .import(7);
  Tensor x({1, 3});
  x.data = {-1, 3, 9};
  CHECK(run(inputs, x).data == std::vector<float>{0, 3, 6});
  CHECK(run(attributes, x).data == std::vector<float>{0, 3, 6});
}

TEST_CASE("all operators that are missing are named with their nodes", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 3}).node("Relu", {"x"}, {"r"});
  writer.node("Det", {"x"}, {"y"}, {}, "/blocks/Det");
  for (const char* name : {"a", "b", "c"}) writer.node("MaxRoiPool", {"x"}, {name}, {}, name);
  const std::string message = message_of(writer.output("y"));
  INFO(message);
  CHECK(message.find("m.onnx: operators that are not supported: Det (1: '/blocks/Det' at "
                     "byte ") != std::string::npos);
  CHECK(message.find("), MaxRoiPool (3: 'a' at byte ") != std::string::npos);
  CHECK(message.ends_with(", ...)"));
  CHECK(message.find("Relu") == std::string::npos);
}

TEST_CASE("a missing operator has its whole name, its domain counts apart", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 3});
  writer.node("SkipSimplifiedLayerNormalization", {"x"}, {"y"}, {}, "n", "com.microsoft");
  CHECK(message_of(writer.output("y"))
            .find("com.microsoft.SkipSimplifiedLayerNormalization (1: 'n' at byte ") !=
        std::string::npos);
}

TEST_CASE("thirty missing operators are all named in one line", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 3});
  for (int i = 0; i < 30; ++i) {
    const std::string name = "name" + std::to_string(i) + std::string(200, 'n');
    writer.node(name, {"x"}, {"y" + std::to_string(i)}, {}, name);
  }
  const std::string message = message_of(writer.output("y0"));
  INFO(message);
  for (int i = 0; i < 30; ++i)
    CHECK(message.find("name" + std::to_string(i) + std::string(30, 'n')) != std::string::npos);
  CHECK(message.find("nnn... (1") != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.size() - message.find("operators that") < 2000);
}

TEST_CASE("an operator that is only folded is refused on values", "[fast]") {
  CHECK(message_of(ModelWriter().input("x", {-1, 3}).node("NonZero", {"x"}, {"y"}).output("y"))
            .find("operator NonZero is not supported on values that are not constant") !=
        std::string::npos);
}

TEST_CASE("constants fold by the operators of the graph, whatever they compute", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 2, 2}).floats("a", {2, 2}, {1, 2, 3, 4}).floats("b", {2, 2}, {0, 1, 1, 0});
  const std::string product = writer.op("MatMul", {"a", "b"});  // 2 1 4 3
  const std::string soft = writer.op("Softplus", {product});
  const std::string most = writer.op("ReduceMax", {soft}, {test::attribute("axes", Ints{1})});
  const std::string whole = writer.op("Cast", {writer.op("Tile", {most, writer.wholes({1, 2})})},
                                      {test::attribute("to", std::int64_t{7})});  // 2 2 4 4
  const std::string real = writer.op("Cast", {whole}, {test::attribute("to", std::int64_t{1})});
  writer.node("Add", {"x", real}, {"y"}).output("y");
  const ImportedModel model = writer.import();
  CHECK(model.graph.nodes.size() == 2);  // the constant and the sum
  CHECK(gemm_layer_names(model.graph).empty());
  CHECK(run(model, Tensor({1, 2, 2}, 1)).data == std::vector<float>{3, 3, 5, 5});
}

TEST_CASE("whole numbers that an operator of the graph would round are refused", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 2}).integers("big", {2}, {16777217, 1});
  writer.node("Tile", {"big", writer.wholes({1})}, {"y"}).output("y");
  CHECK(message_of(writer).find("beyond 2^24") != std::string::npos);
}

TEST_CASE("a file that fixes its batch says how to export it where that matters", "[fast]") {
  ModelWriter writer;
  writer.input("x", {2, 3, 4}).integers("at", {1, 2}, {1, 2});
  writer.node("GatherND", {"x", "at"}, {"y"}).output("y");
  CHECK(message_of(writer).find("dynamic_axes={'x': {0: 'batch'}}") != std::string::npos);
}

TEST_CASE("pairs of quantizers become one, and int8 weights their values", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 2}).floats("s", {}, {0.5f}).floats("ws", {2}, {0.5f, 2});
  const std::string zero =
      writer.op("Constant", {}, {test::tensor_attribute("value", {}, 2, "\x80")});
  const std::string q = writer.op("QuantizeLinear", {"x", "s", zero});
  const std::string x = writer.op("DequantizeLinear", {q, "s", zero});
  const std::string codes =
      writer.op("Constant", {}, {test::tensor_attribute("value", {2, 2}, 3, "\x01\x02\x03\xff")});
  const std::string w =
      writer.op("DequantizeLinear", {codes, "ws"}, {test::attribute("axis", std::int64_t{1})});
  writer.node("MatMul", {x, w}, {"y"}).output("y");
  const ImportedModel model = writer.import();
  REQUIRE(model.graph.nodes.size() == 2);
  CHECK(model.graph.nodes[0].op->kind() == "fixed_quantizer");
  Tensor in({1, 2});
  in.data = {0.6f, 100};  // 0.5 and 63.5
  CHECK(run(model, in).data == std::vector<float>{0.25f + 1.5f * 63.5f, 2 - 2 * 63.5f});
}

TEST_CASE("dynamic integers become numbers again, with a scale of each sample", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 3});
  writer.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  writer.node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y");
  Tensor in({2, 3});
  in.data = {-1, 0.3f, 2, 5, 0.02f, 4.99f};
  std::vector<float> expected;  // by the formula of the specification
  for (std::size_t i = 0; i < 6; i += 3) {
    const auto [low, high] = std::minmax({in.data[i], in.data[i + 1], in.data[i + 2], 0.0f});
    const float scale = (high - low) / 255;
    const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
    for (std::size_t j = i; j < i + 3; ++j)
      expected.push_back(
          (std::clamp(std::nearbyint(in.data[j] / scale) + zero, 0.0f, 255.0f) - zero) * scale);
  }
  CHECK(run(writer.import(), in).data == expected);

  ModelWriter other;
  other.input("x", {-1, 3}).node("Abs", {"x"}, {"s"});
  other.node("DequantizeLinear", {"x", "s"}, {"y"}).output("y");
  CHECK(message_of(other).find("expected constant scales, or the scale of DynamicQuantizeLinear") !=
        std::string::npos);
}

TEST_CASE("a zero point that is cast has the type that it is cast to", "[fast]") {
  const auto model = [](std::int64_t type) {
    ModelWriter writer;
    writer.input("x", {-1, 2}).floats("s", {}, {0.5f}).integers("k", {}, {0});
    const std::string zero = writer.op("Cast", {"k"}, {test::attribute("to", type)});
    const std::string q = writer.op("QuantizeLinear", {"x", "s", zero});
    return writer.node("DequantizeLinear", {q, "s", zero}, {"y"}).output("y");
  };
  Tensor in({1, 2});
  in.data = {-100, 100};
  CHECK(run(model(3).import(), in).data == std::vector<float>{-64, 63.5f});  // int8
  CHECK(run(model(2).import(), in).data == std::vector<float>{0, 100});      // uint8
  CHECK(message_of(model(6)).find("expected integers of 4, 8 or 16 bits") != std::string::npos);
}

TEST_CASE("scales by which nothing can be divided are refused where they stand", "[fast]") {
  for (const float scale : {0.0f, -1.0f, test::kInfinity}) {
    CAPTURE(scale);
    ModelWriter pair;
    pair.input("x", {-1, 2}).floats("s", {}, {scale}).node("QuantizeLinear", {"x", "s"}, {"q"});
    pair.node("DequantizeLinear", {"q", "s"}, {"y"}).output("y");
    CHECK_THAT(message_of(pair), Catch::Contains("QuantizeLinear") &&
                                     Catch::Contains("expected input 1 to be positive scales"));
    for (const bool of_result : {true, false}) {
      ModelWriter product;
      product.input("x", {-1, 2}).floats("one", {}, {1}).floats("s", {}, {scale});
      const std::string zero =
          product.op("Constant", {}, {test::tensor_attribute("value", {}, 3, std::string(1, 0))});
      const std::string w =
          product.op("Constant", {}, {test::tensor_attribute("value", {2, 1}, 3, "\1\2")});
      const std::string q = product.op("QuantizeLinear", {"x", "one", zero});
      product.node(
          "QLinearMatMul",
          {q, of_result ? "one" : "s", zero, w, "one", zero, of_result ? "s" : "one", zero}, {"y"},
          {}, "product");
      CHECK_THAT(message_of(product.output("y")),
                 Catch::Contains(of_result ? "expected input 6 to be a positive scale"
                                           : "expected input 1 to be a positive scale"));
    }
  }
}

TEST_CASE("a value has one producer", "[fast]") {
  const auto writer = [] { return ModelWriter().input("x", {-1, 3}); };
  CHECK(message_of(
            writer().node("Relu", {"x"}, {"y"}).node("Neg", {"x"}, {"y"}, {}, "again").output("y"))
            .find("node 'again' (Neg): value 'y' is defined twice") != std::string::npos);
  CHECK(message_of(writer().node("Relu", {"x"}, {"x"}).output("x"))
            .find("value 'x' is defined twice") != std::string::npos);
  CHECK(message_of(writer().floats("w", {3}, {1, 2, 3}).node("Add", {"x", "w"}, {"w"}).output("w"))
            .find("value 'w' is defined twice") != std::string::npos);
  CHECK(message_of(writer()
                       .floats("w", {3}, {1, 2, 3})
                       .floats("w", {3}, {4, 5, 6})
                       .node("Add", {"x", "w"}, {"y"})
                       .output("y"))
            .find("duplicate initializer 'w'") != std::string::npos);
  CHECK(message_of(writer().input("x", {-1, 4}).node("Relu", {"x"}, {"y"}).output("y"))
            .find("duplicate input 'x'") != std::string::npos);
  // An initializer may be listed as an input, and nodes may leave outputs out.
  CHECK(message_of(writer()
                       .input("w", {3})
                       .floats("w", {3}, {1, 2, 3})
                       .node("Add", {"x", "w"}, {"y", ""})
                       .node("Add", {"y", "w"}, {"z", ""})
                       .output("z"))
            .empty());
}

TEST_CASE("NaN and infinite weights and negative variances are refused by name", "[fast]") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  const auto product = [](float v) {
    return ModelWriter()
        .input("x", {-1, 2})
        .floats("fc.weight", {2, 2}, {1, 2, v, 4})
        .node("MatMul", {"x", "fc.weight"}, {"y"}, {}, "mm")
        .output("y");
  };
  CHECK(message_of(product(3)).empty());
  CHECK(
      message_of(product(kNan))
          .find(
              "node 'mm' (MatMul): tensor 'fc.weight': element 2: expected a number, found NaN") !=
      std::string::npos);
  CHECK(message_of(product(kInfinity))
            .find("node 'mm' (MatMul): weight: element 1: expected a finite number, found inf") !=
        std::string::npos);
  // One rule and one wording where a constant is computed: the sign of 0 / 0 has no meaning.
  CHECK(message_of(ModelWriter()
                       .input("x", {-1, 2})
                       .floats("zero", {2}, {0, -0.0f})
                       .node("Div", {"zero", "zero"}, {"nan"})
                       .node("Add", {"x", "nan"}, {"y"}, {}, "sum")
                       .output("y"))
            .ends_with(": element 0: expected a number, found NaN"));
  // Masks are infinite.
  CHECK(message_of(ModelWriter()
                       .input("x", {-1, 2})
                       .floats("mask", {2}, {0, -kInfinity})
                       .node("Add", {"x", "mask"}, {"y"})
                       .output("y"))
            .empty());
  const auto norm = [](float variance) {
    return ModelWriter()
        .input("x", {-1, 2})
        .floats("one", {2}, {1, 1})
        .floats("v", {2}, {1, variance})
        .node("BatchNormalization", {"x", "one", "one", "one", "v"}, {"y"}, {}, "bn")
        .output("y");
  };
  CHECK(message_of(norm(0)).empty());
  CHECK(
      message_of(norm(-0.25f))
          .find("node 'bn' (BatchNormalization): tensor 'v': element 1: expected a variance of at "
                "least 0, found -0.25") != std::string::npos);
}

TEST_CASE("the memory budget holds for constants", "[fast]") {
  const ModelWriter writer = ModelWriter()
                                 .input("x", {-1, 3})
                                 .integers("many", {1}, {100'000})
                                 .node("ConstantOfShape", {"many"}, {"c"}, {}, "big")
                                 .output("c");
  CHECK(message_of(writer).empty());
  const test::MemoryBudget budget(1 << 20);
  const std::string message = message_of(writer);
  INFO(message);
  CHECK(message.find("node 'big' (ConstantOfShape)") != std::string::npos);
  CHECK(message.find("left by --memory, by 100000 elements") != std::string::npos);
  const test::MemoryBudget none(50);
  CHECK(message_of(writer).find(
            "m.onnx: byte 0: expected a model within the remaining memory budget of 50 bytes") !=
        std::string::npos);
}

TEST_CASE("models that make no sense are refused", "[fast]") {
  CHECK(message_of(ModelWriter().input("x", {-1, 3}).node("Relu", {"nowhere"}, {"y"}).output("y"))
            .find("expected input 'nowhere' to be computed earlier") != std::string::npos);
  CHECK(message_of(ModelWriter().input("x", {-1, 3}).node("Relu", {"x"}, {"y"}).output("z"))
            .find("output 'z': is not the output of any node") != std::string::npos);
  CHECK(message_of(ModelWriter().input("x", {-1, 3}).node("Relu", {"x"}, {"y"}))
            .find("expected a graph with an output") != std::string::npos);
  CHECK(message_of(ModelWriter().floats("w", {1}, {1}).node("Relu", {"w"}, {"y"}).output("y"))
            .find("expected a graph with an input") != std::string::npos);
  CHECK(message_of(ModelWriter().input("x", {-1, -1}).node("Relu", {"x"}, {"y"}).output("y"))
            .find("axis 1 (symbol) has no extent") != std::string::npos);
  CHECK(message_of(ModelWriter()
                       .input("x", {-1, 3})
                       .integers("many", {2}, {1 << 30, 1 << 10})
                       .node("ConstantOfShape", {"many"}, {"c"})
                       .output("c"))
            .find("exceed the memory") != std::string::npos);
}

TEST_CASE("attributes that no operator has are refused with what was found", "[fast]") {
  const auto refused = [](const std::string& op, const std::string& name, std::int64_t value) {
    ModelWriter w;
    w.input("x", {-1, 2, 5, 5}).floats("w", {4, 2, 3, 3}, std::vector<float>(72, 1));
    std::vector<std::string> inputs{"x"};
    if (op == "Conv") inputs.push_back("w");
    return message_of(w.node(op, inputs, {"y"}, {test::attribute(name, value)}).output("y"));
  };
  CHECK_THAT(refused("Cast", "to", 8), Catch::Contains("expected a type of numbers, found type 8"));
  CHECK_THAT(refused("Cast", "to", 257), Catch::Contains("found type 257"));
  CHECK_THAT(refused("Flatten", "axis", 9),
             Catch::Contains("expected an axis from 1 to 4, found 9"));
  CHECK_THAT(refused("Conv", "group", 0),
             Catch::Contains("expected a group that divides 2 channels and "
                             "4 of the result, found 0"));
  CHECK_THAT(refused("Conv", "group", 2),
             Catch::Contains("expected 2 input channels of the weight times its groups, found 2"));
}

TEST_CASE("constants that double and double are refused before memory is taken", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 3}).integers("c0", {4}, {1, 2, 3, 4});
  for (int i = 0; i < 60; ++i) {
    const std::string from = "c" + std::to_string(i), to = "c" + std::to_string(i + 1);
    writer.node("Concat", {from, from}, {to}, {test::attribute("axis", std::int64_t{0})});
  }
  CHECK(message_of(writer.output("c60")).find("exceed the memory") != std::string::npos);
}

constexpr const char* kResNet = NUMEMU_SHARED "/models/resnet20-cifar10.onnx";

TEST_CASE("ResNet-20 classifies the first test images as published", "[fast][shared]") {
  if (!std::filesystem::exists(kResNet)) {
    WARN("skipped: no " << kResNet);
    return;
  }
  const ImportedModel model = import_onnx(read_onnx(kResNet));
  CHECK(model.graph.parameter_count() == 269'722);  // of the convolutions, norms and classifier
  CHECK(gemm_layer_names(model.graph).size() == 20);
  CHECK(gemm_layer_names(model.graph)[1] == "layer1.0.conv1");
  const Dataset data = load_dataset("cifar10:" NUMEMU_SHARED "/data/cifar10", "");
  Numerics numerics;
  const Evaluation seen = evaluate(model.graph, data, Split::test, 512, numerics);
  // 81.03 % of all 10,000 (slow test); of the first 512 within four standard errors.
  CHECK(std::fabs(static_cast<double>(seen.correct) / 512 - 0.8103) < 4 * 0.0174);
}

TEST_CASE("ResNet-20 is right on 81.03 % of the test images", "[slow][shared]") {
  ImportedModel model = import_onnx(read_onnx(kResNet));
  const Dataset data = load_dataset("cifar10:" NUMEMU_SHARED "/data/cifar10", "");
  Numerics numerics;
  const Evaluation seen = evaluate(model.graph, data, Split::test, 0, numerics);
  CHECK(std::abs(seen.correct - 8103) <= 2);
  // Folding the norms moves roundings, not the network.
  CHECK(fold_batch_norm(model.graph) == 19);
  const Evaluation folded = evaluate(model.graph, data, Split::test, 0, numerics);
  CHECK(std::abs(folded.correct - 8103) <= 2);
}

}  // namespace
}  // namespace numemu::net::import_test
