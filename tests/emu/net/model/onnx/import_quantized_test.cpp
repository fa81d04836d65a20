// Quantized operators of ONNX Runtime, by hand; tests/onnx/quantized_operators.py compares whole
// tensors with ONNX Runtime.
#include "emu/net/model/onnx/import.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::import_quantized_test {
namespace {

using Catch::Contains;
using test::attribute;
using test::ModelWriter;
using test::tensor_of;

constexpr int kUint8 = 2, kInt8 = 3;
const char* const kMicrosoft = "com.microsoft";

/// x of float32 is quantized, goes through the operator, and what it gives is dequantized.
struct Quantized {
  ModelWriter w;

  explicit Quantized(const test::Ints& dims) { w.input("x", dims); }
  std::string zero(int value, int type = kUint8) {
    return w.op(
        "Constant", {},
        {test::tensor_attribute("value", {}, type, std::string(1, static_cast<char>(value)))});
  }
  /// Integers, scale and zero point of x under a scale.
  std::vector<std::string> quantized(float scale, int zero_point) {
    const std::string s = w.number(scale), z = zero(zero_point);
    return {w.op("QuantizeLinear", {"x", s, z}), s, z};
  }
  Tensor run(const std::string& op, std::vector<std::string> inputs, float scale, int zero_point,
             const Tensor& x, const std::vector<std::string>& attributes = {},
             bool ends_first = false) {
    const std::vector<std::string> ends{w.number(scale), zero(zero_point)};
    inputs.insert(ends_first ? inputs.begin() : inputs.end(), ends.begin(), ends.end());
    w.node(op, inputs, {"q"}, attributes, "node", kMicrosoft);
    w.node("DequantizeLinear", {"q", ends[0], ends[1]}, {"y"}, {}, "", kMicrosoft).output("y");
    return test::run_model(w.import(13), {x});
  }
};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_CASE("QLinearAdd and QLinearMul: halves to even with the zero point, held within the type",
          "[fast]") {
  const Tensor x = tensor_of({1, 4}, {1, 3, -2, 100});
  {
    // Integers 10 + x twice; results 5.5, 6.5, 4 and 55 before they are rounded.
    Quantized q({-1, 4});
    const std::vector<std::string> a = q.quantized(1, 10);
    CHECK(q.run("QLinearAdd", joined(a, a), 4, 5, x).data == std::vector<float>{4, 4, -4, 200});
  }
  {
    Quantized q({-1, 4});
    const std::vector<std::string> a = q.quantized(1, 10);
    CHECK(q.run("QLinearMul", joined(a, a), 2, 5, x).data == std::vector<float>{2, 10, 4, 500});
  }
}

TEST_CASE("quantized operators of one input", "[fast]") {
  const Tensor x = tensor_of({1, 4}, {0, 8, -8, 2});
  {
    Quantized q({-1, 4});
    CHECK(q.run("QLinearSigmoid", q.quantized(1, 128), 0.25f, 0, x).data ==
          std::vector<float>{0.5f, 1, 0, 1});
  }
  {
    Quantized q({-1, 4});
    CHECK(q.run("QLinearLeakyRelu", q.quantized(1, 128), 1, 128, x, {attribute("alpha", 0.5f)})
              .data == std::vector<float>{0, 8, -4, 2});
  }
  {
    Quantized q({-1, 4});
    const std::vector<std::string> a = q.quantized(1, 128);
    CHECK(
        q.run("QLinearConcat", joined(a, a), 2, 128, x, {attribute("axis", std::int64_t{1})}, true)
            .data == std::vector<float>{0, 8, -8, 2, 0, 8, -8, 2});
  }
  {
    Quantized q({-1, 1, 2, 2});
    CHECK(q.run("QLinearGlobalAveragePool", q.quantized(1, 128), 0.5f, 128,
                tensor_of({1, 2, 2, 1}, {0, 8, -8, 2}))
              .data == std::vector<float>{0.5f});
  }
  Quantized last({-1, 1, 2, 2});
  CHECK_THROWS_WITH(last.run("QLinearGlobalAveragePool", last.quantized(1, 128), 1, 128,
                             tensor_of({1, 2, 2, 1}, {0, 8, -8, 2}),
                             {attribute("channels_last", std::int64_t{1})}),
                    Contains("node") && Contains("channels_last = 0"));
}

/// A layer of two outputs and 20 inputs in blocks of 16; the second block of a row is short.
struct Codes {
  std::string bytes = std::string(32, '\x88');
  std::vector<float> scales{1, 2, 0.5f, -1};
  std::vector<std::string> more;  ///< inputs
  std::vector<std::string> attributes{
      attribute("K", std::int64_t{20}), attribute("N", std::int64_t{2}),
      attribute("bits", std::int64_t{4}), attribute("block_size", std::int64_t{16})};
  ModelWriter w;

  ImportedModel import() {
    w.input("x", {-1, 20});
    const std::string b =
        w.op("Constant", {}, {test::tensor_attribute("value", {2, 2, 8}, kUint8, bytes)}, "codes");
    w.floats("s", {std::ssize(scales)}, scales);
    std::vector<std::string> inputs{"x", b, "s"};
    inputs.insert(inputs.end(), more.begin(), more.end());
    w.node("MatMulNBits", inputs, {"y"}, attributes, "product", kMicrosoft).output("y");
    return w.import(13);
  }
};

TEST_CASE("MatMulNBits: low nibble first, a scale for each block, zero points 8 or given",
          "[fast]") {
  Tensor x({1, 20}, 1);
  {
    Codes c;
    c.bytes[0] = '\x89', c.bytes[8 + 1] = '\xa8', c.bytes[16] = '\x78', c.bytes[24] = '\x98';
    // 1 x 1 and 2 x 2; -1 x 0.5 and 1 x -1.
    CHECK(test::run_model(c.import(), {x}).data == std::vector<float>{5, -1.5f});
  }
  {
    Codes c;  // zero points 7 and 9 of the first row, 8 and 8 of the second
    c.more = {c.w.op("Constant", {}, {test::tensor_attribute("value", {2}, kUint8, "\x97\x88")})};
    CHECK(test::run_model(c.import(), {x}).data == std::vector<float>{16 - 8, 0});
  }
  {
    Codes c;
    c.w.floats("z", {4}, {7.5f, 8, 8, 8});
    c.more = {"z"};
    c.attributes.push_back(attribute("accuracy_level", std::int64_t{4}));
    const ImportedModel model = c.import();
    CHECK(test::run_model(model, {x}).data == std::vector<float>{8, 0});
    REQUIRE(model.notes.size() == 1);
    CHECK_THAT(model.notes[0], Contains("accuracy_level 4"));
  }
}

TEST_CASE("MatMulNBits: g_idx gives each input the scale and the zero point of a group", "[fast]") {
  Codes c;
  c.bytes[0] = '\x89', c.bytes[8 + 1] = '\xa8', c.bytes[16] = '\x78', c.bytes[24] = '\xa8';
  // Inputs 0 and 19 in the second group, all others in the first.
  std::vector<std::int64_t> groups(20, 0);
  groups[0] = groups[19] = 1;
  c.w.integers("g", {20}, groups);
  c.more = {c.w.op("Constant", {}, {test::tensor_attribute("value", {2}, kUint8, "\x68\x88")}),
            "g"};
  // (9 - 6) 2 of input 0 and (10 - 6) 2 of input 19; (7 - 8) 0.5 of input 1, (10 - 8) 0.5 of 17.
  CHECK(test::run_model(c.import(), {Tensor({1, 20}, 1)}).data ==
        std::vector<float>{6 + 8, -0.5f + 1});
}

TEST_CASE("MatMulNBits: sizes that lie", "[fast]") {
  const auto refused = [](const std::function<void(Codes&)>& change) {
    Codes c;
    change(c);
    return numemu::test::message_of([&] { c.import(); });
  };
  CHECK_THAT(refused([](Codes& c) { c.scales.pop_back(); }),
             Contains("product") && Contains("expected 4 scales for N 2 and K 20 in blocks of 16"));
  CHECK_THAT(refused([](Codes& c) { c.attributes[0] = attribute("K", std::int64_t{40}); }),
             Contains("expected 48 bytes of codes"));
  CHECK_THAT(refused([](Codes& c) { c.attributes[1] = attribute("N", std::int64_t{1} << 40); }),
             Contains("expected K and N of 1..2^31"));
  CHECK_THAT(refused([](Codes& c) { c.attributes[3] = attribute("block_size", std::int64_t{17}); }),
             Contains("expected a block_size of a power of two"));
  CHECK_THAT(refused([](Codes& c) { c.attributes[2] = attribute("bits", std::int64_t{5}); }),
             Contains("expected codes of 2, 4 or 8 bits, found 5"));
  CHECK_THAT(refused([](Codes& c) {
               c.more = {"", "s"};
             }),
             Contains("expected g_idx to be 20 integers, found [4] of float32"));
  CHECK_THAT(refused([](Codes& c) {
               std::vector<std::int64_t> groups(20, 1);
               groups[7] = 2;
               c.w.integers("g", {20}, groups);
               c.more = {"", "g"};
             }),
             Contains("expected g_idx within 0..1, found 2 at 7"));
  CHECK_THAT(refused([](Codes& c) {
               c.w.floats("z", {3}, {1, 2, 3});
               c.more = {"z"};
             }),
             Contains("expected 4 zero points"));
}

}  // namespace
}  // namespace numemu::net::import_quantized_test
