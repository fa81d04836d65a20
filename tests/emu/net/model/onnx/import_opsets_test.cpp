// Operators as each operator set spells them: attributes that became inputs, axes that changed
// their meaning.
#include <cmath>
#include <limits>
#include <utility>

#include "emu/net/model/onnx/import.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::import_opsets_test {
namespace {

using test::attribute;
using test::Doubles;
using test::Ints;
using test::ModelWriter;
using test::output_of;
using test::run_model;
using test::tensor_of;

/// One rounding of numbers below 8, or a few.
constexpr double kFew = 4 * 8 * 0x1p-24;

/// The result of one operator on x [batch, ..] with constant inputs.
struct Single {
  explicit Single(const Ints& dims, int type = 1) { writer.input("x", dims, type); }
  ModelWriter writer;
  std::vector<std::string> inputs{"x"};
  std::vector<std::string> attributes;

  Single& wholes(const Ints& values) {
    const std::string name = "c" + std::to_string(inputs.size());
    writer.integers(name, {static_cast<std::int64_t>(values.size())}, values);
    inputs.push_back(name);
    return *this;
  }
  Single& number(float value) {
    const std::string name = "c" + std::to_string(inputs.size());
    writer.floats(name, {}, {value});
    inputs.push_back(name);
    return *this;
  }
  Single& none() {
    inputs.push_back("");
    return *this;
  }
  Single& with(const std::string& a) {
    attributes.push_back(a);
    return *this;
  }
  ImportedModel import(const std::string& op, std::int64_t opset) {
    return writer.node(op, inputs, {"y"}, attributes).output("y").import(opset);
  }
  Tensor run(const std::string& op, std::int64_t opset, const Tensor& x) {
    return test::run_model(import(op, opset), {x});
  }
  std::string refusal(const std::string& op, std::int64_t opset) {
    return numemu::test::message_of([&] { import(op, opset); });
  }
};

const Tensor& counting() {
  static const Tensor kX = [] {
    Tensor x({1, 2, 3});
    for (std::size_t i = 0; i < 6; ++i) x.data[i] = static_cast<float>(i);
    return x;
  }();
  return kX;
}

TEST_CASE("Clip and Max and Min bound values in every operator set", "[fast]") {
  const Tensor x = tensor_of({1, 4}, {-9, -1, 3, 9});
  const std::vector<float> six{0, 0, 3, 6}, upper{-9, -1, 3, 6};
  for (const std::int64_t opset : {7, 9})
    CHECK(Single({-1, 4})
              .with(attribute("min", 0.0f))
              .with(attribute("max", 6.0f))
              .run("Clip", opset, x)
              .data == six);
  for (const std::int64_t opset : {11, 13, 17})
    CHECK(Single({-1, 4}).number(0).number(6).run("Clip", opset, x).data == six);
  CHECK(Single({-1, 4}).none().number(6).run("Clip", 13, x).data == upper);
  CHECK(Single({-1, 4}).number(6).run("Min", 13, x).data == upper);
  CHECK(Single({-1, 4}).number(0).run("Max", 13, x).data == std::vector<float>{0, 0, 3, 9});
  CHECK(Single({-1, 4}, 7).wholes({1, 2, 2, 2}).run("Max", 13, x).data ==
        std::vector<float>{1, 2, 3, 9});
}

TEST_CASE("Pad has attributes and then inputs", "[fast]") {
  const std::vector<float> padded{7, 7, 0, 1, 2, 7, 7, 3, 4, 5};
  const Ints pads{0, 0, 2, 0, 0, 0};
  for (const std::int64_t opset : {7, 9})
    CHECK(Single({-1, 2, 3})
              .with(attribute("pads", pads))
              .with(attribute("value", 7.0f))
              .run("Pad", opset, counting())
              .data == padded);
  for (const std::int64_t opset : {11, 13})
    CHECK(Single({-1, 2, 3}).wholes(pads).number(7).run("Pad", opset, counting()).data == padded);
  CHECK(Single({-1, 2, 3}).wholes({2, 0}).number(7).wholes({-1}).run("Pad", 18, counting()).data ==
        padded);
  CHECK(Single({-1, 2, 3})
            .wholes(pads)
            .with(test::text_attribute("mode", "reflect"))
            .run("Pad", 13, counting())
            .data == std::vector<float>{2, 1, 0, 1, 2, 5, 4, 3, 4, 5});
  CHECK(Single({-1, 2, 3})
            .wholes(pads)
            .with(test::text_attribute("mode", "mirror"))
            .refusal("Pad", 13)
            .find("mode") != std::string::npos);
  CHECK(
      Single({-1, 2, 3}).wholes({1, 0, 0, 0, 0, 0}).refusal("Pad", 13).find("padding the batch") !=
      std::string::npos);
}

TEST_CASE("Slice has attributes and then inputs", "[fast]") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t opset : {7, 9}) {
    const Tensor y = Single({-1, 2, 3})
                         .with(attribute("starts", Ints{1, 0}))
                         .with(attribute("ends", Ints{kMost, -1}))
                         .with(attribute("axes", Ints{1, 2}))
                         .run("Slice", opset, counting());
    CHECK(y.shape == Shape{1, 1, 2});
    CHECK(y.data == std::vector<float>{3, 4});
  }
  for (const std::int64_t opset : {11, 13}) {
    CHECK(Single({-1, 2, 3})
              .wholes({-1})
              .wholes({kLeast})
              .wholes({-1})
              .wholes({-2})
              .run("Slice", opset, counting())
              .data == std::vector<float>{2, 0, 5, 3});
    CHECK(
        Single({-1, 2, 3}).wholes({0, 1}).wholes({kMost, 2}).run("Slice", opset, counting()).data ==
        std::vector<float>{3, 4, 5});
  }
  CHECK(Single({-1, 2, 3})
            .wholes({1})
            .wholes({2})
            .wholes({0})
            .refusal("Slice", 13)
            .find("cutting the batch") != std::string::npos);
}

TEST_CASE("Squeeze and Unsqueeze take axes from attributes and then inputs", "[fast]") {
  const Tensor x = tensor_of({2, 1, 3}, {0, 1, 2, 3, 4, 5});
  for (const std::int64_t opset : {7, 11}) {
    CHECK(Single({-1, 1, 3}).with(attribute("axes", Ints{1})).run("Squeeze", opset, x).shape ==
          Shape{2, 3});
    CHECK(Single({-1, 1, 3}).with(attribute("axes", Ints{1, 4})).run("Unsqueeze", opset, x).shape ==
          Shape{2, 1, 1, 3, 1});
  }
  CHECK(Single({-1, 1, 3}).wholes({-2}).run("Squeeze", 13, x).shape == Shape{2, 3});
  CHECK(Single({-1, 1, 3}).run("Squeeze", 13, x).shape == Shape{2, 3});
  CHECK(Single({-1, 1, 3}).wholes({1}).run("Unsqueeze", 13, x).shape == Shape{2, 1, 1, 3});
  CHECK(Single({1, 1, 3}).refusal("Squeeze", 13).find("the batch") != std::string::npos);
  CHECK(Single({-1, 1, 3}).wholes({2}).refusal("Squeeze", 13).find("axes of one element") !=
        std::string::npos);
}

TEST_CASE("the axis of Softmax means what its operator set says", "[fast]") {
  const auto softmax = [](const Ints& groups) {  // of counting(): group of each element
    Doubles y;
    for (std::size_t i = 0; i < 6; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 6; ++j)
        sum += groups[i] == groups[j] ? std::exp(static_cast<double>(j)) : 0;
      y.push_back(std::exp(static_cast<double>(i)) / sum);
    }
    return y;
  };
  const Ints rows{0, 0, 0, 1, 1, 1}, columns{0, 1, 2, 0, 1, 2};
  test::require_close(softmax(rows), Single({-1, 2, 3}).run("Softmax", 13, counting()), kFew,
                      "13: the last axis by default");
  test::require_close(
      softmax(columns),
      Single({-1, 2, 3}).with(attribute("axis", std::int64_t{1})).run("Softmax", 13, counting()),
      kFew, "13: axis 1 alone");
  test::require_close(
      softmax(rows),
      Single({-1, 2, 3}).with(attribute("axis", std::int64_t{2})).run("Softmax", 11, counting()),
      kFew, "11: the last axis");
  test::require_close(softmax({0, 0, 0, 0, 0, 0}),
                      Single({-1, 2, 3}).run("Softmax", 11, counting()), kFew,
                      "11: axis 1, the default, and all behind it");
  CHECK(Single({-1, 3, 1}).run("Softmax", 11, tensor_of({1, 3, 1}, {1, 1, 1})).data ==
        std::vector<float>(3, 1.0f / 3));
}

TEST_CASE("Split is by equal parts or by sizes", "[fast]") {
  const auto parts = [](ModelWriter writer, std::int64_t opset,
                        const std::vector<std::string>& inputs,
                        const std::vector<std::string>& attributes) {
    const ImportedModel model = writer.input("x", {-1, 2, 3})
                                    .node("Split", inputs, {"a", "b"}, attributes)
                                    .output("a")
                                    .output("b")
                                    .import(opset);
    using Both = std::pair<std::vector<float>, std::vector<float>>;
    return Both(output_of(model, 0, {counting()}).data, output_of(model, 1, {counting()}).data);
  };
  const std::string last = attribute("axis", std::int64_t{2}),
                    middle = attribute("axis", std::int64_t{1});
  const std::pair uneven{std::vector<float>{0, 3}, std::vector<float>{1, 2, 4, 5}};
  CHECK(parts({}, 11, {"x"}, {last, attribute("split", Ints{1, 2})}) == uneven);
  CHECK(parts(ModelWriter().integers("s", {2}, {1, 2}), 13, {"x", "s"}, {last}) == uneven);
  const std::pair even{std::vector<float>{0, 1, 2}, std::vector<float>{3, 4, 5}};
  CHECK(parts({}, 7, {"x"}, {middle}) == even);
  CHECK(parts({}, 18, {"x"}, {middle, attribute("num_outputs", std::int64_t{2})}) == even);
  // Three into two: the last part is smaller.
  CHECK(parts({}, 18, {"x"}, {last, attribute("num_outputs", std::int64_t{2})}) ==
        std::pair{std::vector<float>{0, 1, 3, 4}, std::vector<float>{2, 5}});
  CHECK_THROWS_WITH(parts({}, 11, {"x"}, {last, attribute("split", Ints{1, 1})}),
                    Catch::Contains("add up"));
}

TEST_CASE("ReduceMean and ReduceSum take axes from attributes and then inputs", "[fast]") {
  const std::vector<float> means{1, 4}, sums{3, 12};
  const std::string axes = attribute("axes", Ints{-1}),
                    drop = attribute("keepdims", std::int64_t{0});
  for (const std::int64_t opset : {7, 13, 17})
    CHECK(Single({-1, 2, 3}).with(axes).run("ReduceMean", opset, counting()).data == means);
  CHECK(Single({-1, 2, 3}).wholes({2}).run("ReduceMean", 18, counting()).shape == Shape{1, 2, 1});
  const Tensor sum = Single({-1, 2, 3}).wholes({2}).with(drop).run("ReduceSum", 13, counting());
  CHECK(sum.shape == Shape{1, 2});
  CHECK(sum.data == sums);
  CHECK(Single({-1, 2, 3}).with(axes).run("ReduceSum", 11, counting()).data == sums);
  for (const Ints& bad : {Ints{}, Ints{0}, Ints{0, 1, 2}})
    CHECK(Single({-1, 2, 3}).wholes(bad).refusal("ReduceMean", 18).find("batch") !=
          std::string::npos);
  CHECK(Single({-1, 2, 3}).refusal("ReduceMean", 13).find("batch") != std::string::npos);
}

TEST_CASE("Dropout passes values on whatever its inputs say", "[fast]") {
  CHECK(Single({-1, 2, 3}).with(attribute("ratio", 0.5f)).run("Dropout", 7, counting()).data ==
        counting().data);
  for (const std::int64_t opset : {12, 13, 18})
    CHECK(Single({-1, 2, 3}).number(0.5f).run("Dropout", opset, counting()).data ==
          counting().data);
  const ImportedModel masked = ModelWriter()
                                   .input("x", {-1, 2, 3})
                                   .node("Dropout", {"x"}, {"y", "mask"})
                                   .node("Neg", {"y"}, {"z"})
                                   .output("z")
                                   .import(10);
  CHECK(run_model(masked, {counting()}).data[5] == -5);
}

TEST_CASE("BatchNormalization uses the statistics of the file", "[fast]") {
  for (const std::vector<std::string>& outputs :
       {std::vector<std::string>{"y"}, {"y", "m", "v", "sm", "sv"}, {"y", "m", "v"}}) {
    const ImportedModel model =
        ModelWriter()
            .input("x", {-1, 2})
            .floats("bn.weight", {2}, {2, 3})
            .floats("bn.bias", {2}, {1, -1})
            .floats("mean", {2}, {0.5f, 1})
            .floats("variance", {2}, {4, 0.25f})
            .node("BatchNormalization", {"x", "bn.weight", "bn.bias", "mean", "variance"}, outputs,
                  {attribute("epsilon", 1e-30f), attribute("momentum", 0.9f)})
            .output("y")
            .import(outputs.size() == 3 ? 14 : 9);
    CHECK(model.graph.nodes[0].name == "bn");
    CHECK(run_model(model, {tensor_of({1, 2}, {2.5f, 2})}).data == std::vector<float>{3, 5});
  }
}

TEST_CASE("casts of real numbers to whole ones cut, and quotients of whole numbers too", "[fast]") {
  const std::string to_whole = attribute("to", std::int64_t{7});
  CHECK(
      Single({-1, 3}).with(to_whole).run("Cast", 13, tensor_of({1, 3}, {1.75f, -1.75f, 2})).data ==
      std::vector<float>{1, -1, 2});
  const Tensor x = tensor_of({1, 3}, {4, 0, 2});
  CHECK(Single({-1, 3}, 7).with(to_whole).run("Cast", 13, x).data == x.data);
  CHECK(Single({-1, 3}, 7).with(attribute("to", std::int64_t{1})).run("Cast", 13, x).data ==
        x.data);
  CHECK(Single({-1, 3}).with(attribute("to", std::int64_t{9})).run("Cast", 13, x).data ==
        std::vector<float>{1, 0, 1});
  CHECK(Single({-1, 3}, 7).wholes({3}).run("Div", 13, x).data == std::vector<float>{1, 0, 0});
}

TEST_CASE("casts to floats of 8 and 16 bits round what the network computes", "[fast]") {
  const Tensor x = tensor_of({1, 3}, {1 + 0x3p-11f, 65520, -500});
  const auto cast = [&](OnnxType type) {
    return Single({-1, 3})
        .with(attribute("to", static_cast<std::int64_t>(type)))
        .run("Cast", 19, x)
        .data;
  };
  CHECK(cast(OnnxType::float16) == std::vector<float>{1 + 0x1p-9f, HUGE_VALF, -500});
  CHECK(cast(OnnxType::bfloat16) == std::vector<float>{1, 65536, -500});
  CHECK(cast(OnnxType::float8_e4m3fn) == std::vector<float>{1, 448, -448});
  // Back to float32 nothing changes.
  ModelWriter writer;
  const std::string half =
      writer.input("x", {-1, 3}).op("Cast", {"x"}, {attribute("to", std::int64_t{10})});
  writer.output(writer.op("Cast", {half}, {attribute("to", std::int64_t{1})}));
  CHECK(test::run_model(writer.import(13), {x}).data == cast(OnnxType::float16));
}

TEST_CASE("operators of sets 18 to 21 as their specification writes them", "[fast]") {
  const Tensor x = tensor_of({1, 4}, {-1, 0, 1, 2});
  const Tensor exact = Single({-1, 4}).run("Gelu", 20, x);
  const Tensor close =
      Single({-1, 4}).with(test::text_attribute("approximate", "tanh")).run("Gelu", 20, x);
  for (std::size_t i = 0; i < 4; ++i) {
    const double v = x.data[i];
    CHECK(exact.data[i] == Approx(v / 2 * (1 + std::erf(v / std::sqrt(2.0)))).margin(kFew));
    CHECK(close.data[i] ==
          Approx(v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))))
              .margin(kFew));
  }
  // A weight for each group in set 18, for each channel in set 21.
  const Tensor y = tensor_of({1, 4, 1}, {1, 3, 10, 20});
  const std::string groups = attribute("num_groups", std::int64_t{2});
  const auto norm = [&](std::int64_t opset, const std::vector<float>& weight) {
    ModelWriter writer;
    const auto size = static_cast<std::int64_t>(weight.size());
    writer.input("x", {-1, 4, 1})
        .floats("w", {size}, weight)
        .floats("b", {size}, std::vector<float>(weight.size(), 1));
    return run_model(writer
                         .node("GroupNormalization", {"x", "w", "b"}, {"y"},
                               {groups, attribute("epsilon", 1e-9f)})
                         .output("y")
                         .import(opset),
                     {y});
  };
  test::require_close({-1, 3, -3, 5}, norm(18, {2, 4}), kFew, "groups");
  test::require_close({-1, 3, -3, 6}, norm(21, {2, 2, 4, 5}), kFew, "channels");
  // Parts by number, of which the last is shorter; pads of chosen axes; axes of a reduction.
  const ImportedModel split =
      ModelWriter()
          .input("x", {-1, 5})
          .node("Split", {"x"}, {"a", "b"},
                {attribute("axis", std::int64_t{1}), attribute("num_outputs", std::int64_t{2})})
          .output("a")
          .output("b")
          .import(18);
  const Tensor five = tensor_of({1, 5}, {1, 2, 3, 4, 5});
  CHECK(output_of(split, 0, {five}).data == std::vector<float>{1, 2, 3});
  CHECK(output_of(split, 1, {five}).data == std::vector<float>{4, 5});
  CHECK(Single({-1, 2, 3})
            .wholes({1, 0})
            .none()
            .wholes({2})
            .with(test::text_attribute("mode", "wrap"))
            .run("Pad", 19, counting())
            .data == std::vector<float>{2, 0, 1, 2, 5, 3, 4, 5});
  CHECK(Single({-1, 2, 3}).wholes({2}).run("ReduceMax", 18, counting()).data ==
        std::vector<float>{2, 5});
  CHECK(Single({-1, 2, 3}).wholes({-1}).run("ReduceSumSquare", 18, counting()).data ==
        std::vector<float>{5, 50});
}

TEST_CASE("weights of four bits with a scale for every block are folded", "[fast]") {
  // [2, 4] in blocks of two along axis 1: 1 -1 | 2 -8, 7 0 | -2 3.
  const std::string codes{"\xf1\x82\x07\x3e", 4};
  ModelWriter writer;
  writer.input("x", {-1, 2}).floats("s", {2, 2}, {0.5f, 1, 2, 0.25f});
  const std::string w =
      writer.op("Constant", {}, {test::tensor_attribute("value", {2, 4}, 22, codes)});
  const std::string values =
      writer.op("DequantizeLinear", {w, "s"},
                {attribute("axis", std::int64_t{1}), attribute("block_size", std::int64_t{2})});
  writer.node("MatMul", {"x", values}, {"y"}).output("y");
  const ImportedModel model = writer.import(21);
  CHECK(run_model(model, {tensor_of({2, 2}, {1, 0, 0, 1})}).data ==
        std::vector<float>{0.5f, -0.5f, 2, -8, 14, 0, -0.5f, 0.75f});
}

}  // namespace
}  // namespace numemu::net::import_opsets_test
