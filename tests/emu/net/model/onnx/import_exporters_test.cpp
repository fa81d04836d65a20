// Networks and spellings that exporters write, against float64 computations of the same weights.
#include <algorithm>
#include <cmath>
#include <limits>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::import_exporters_test {
namespace {

using test::attribute;
using test::Doubles;
using test::GptBlock;
using test::GptStyle;
using test::Ints;
using test::MobileBlock;
using test::ModelWriter;
using test::output_of;
using test::run_model;
using test::tensor_of;

/// Logits of magnitude a few, after a handful of layers of up to 27 float32 products each: some
/// hundred roundings of 2^-24 each, of numbers below 8.
constexpr double kNetwork = 300 * 8 * 0x1p-24;
Tensor tokens(std::int64_t batch) {
  Tensor out({batch, GptBlock::kTokens});
  for (std::size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = static_cast<float>((7 * i + i * i) % GptBlock::kWords);
  return out;
}

/// Samples [first, first + count) of a batch.
Tensor samples(const Tensor& x, std::int64_t first, std::int64_t count) {
  const std::int64_t each = x.size() / x.dim(0);
  Tensor out;
  out.shape = x.shape;
  out.shape[0] = count;
  out.data = {x.data.begin() + first * each, x.data.begin() + (first + count) * each};
  return out;
}

/// What a sample gives must not depend on what else is in the batch.
void check_batches(const ImportedModel& model, const Tensor& sixteen) {
  const Tensor all = run_model(model, {sixteen});
  for (const std::int64_t batch : {1, 3}) {
    for (std::int64_t first = 0; first + batch <= 16; first += 5) {
      const Tensor y = run_model(model, {samples(sixteen, first, batch)});
      CHECK(test::bits(y) == test::bits(samples(all, first, batch)));
    }
  }
}

void check_gpt(const GptStyle& style, std::int64_t opset, std::size_t products) {
  const GptBlock block(style);
  const ImportedModel model = block.writer().import(opset);
  CHECK(gemm_layer_names(model.graph).size() == products);
  const Tensor x = tokens(16);
  check_batches(model, x);
  const Tensor y = run_model(model, {samples(x, 0, 3)});
  REQUIRE(y.shape == Shape{3, GptBlock::kTokens, GptBlock::kWords});
  for (std::int64_t n = 0; n < 3; ++n)
    test::require_close(block.reference(samples(x, n, 1).data), samples(y, n, 1), kNetwork,
                        "sample " + std::to_string(n));
}

TEST_CASE("a GPT block with split products and a chosen mask", "[fast]") {
  check_gpt({}, 13, 7);  // c_attn, scores, values, c_proj, c_fc, c_proj, head
}

TEST_CASE("a GPT block with three products and an added mask and erf", "[fast]") {
  check_gpt({.split = false, .masks_add = true, .tanh_gelu = false}, 14, 9);
}

TEST_CASE("a GPT block whose products are Gemm between reshapes", "[fast]") {
  check_gpt({.gemm = true}, 17, 7);
}

TEST_CASE("a GPT block of a file that fixes the batch", "[fast]") {
  check_gpt({.batch = 1}, 13, 7);
  check_gpt({.gemm = true, .batch = 2}, 13, 7);
}

TEST_CASE("a MobileNetV2 block", "[fast]") {
  for (const std::int64_t batch : {-1, 1}) {
    const MobileBlock block(batch);
    const ImportedModel model = block.writer().import(13);
    CHECK(gemm_layer_names(model.graph) ==
          std::vector<std::string>{"stem", "expand", "depthwise", "project", "classifier"});
    const Tensor x = test::random_tensor({16, 6, 6, 3}, 40);
    check_batches(model, x);
    const Tensor y = run_model(model, {samples(x, 0, 3)});
    REQUIRE(y.shape == Shape{3, MobileBlock::kClasses});
    for (std::int64_t n = 0; n < 3; ++n)
      test::require_close(block.reference(x.data.data() + n * 108), samples(y, n, 1), kNetwork,
                          "image " + std::to_string(n));
  }
}

TEST_CASE("two inputs, two outputs, an image among them", "[fast]") {
  const ImportedModel model =
      ModelWriter()
          .input("image", {-1, 2, 2, 2})
          .input("vector", {-1, 2})
          .floats("one", {}, {1})
          .integers("axes", {2}, {2, 3})
          .node("Add", {"image", "one"}, {"bright"})
          .node("GlobalMaxPool", {"bright"}, {"pooled"})
          .node("Flatten", {"pooled"}, {"flat"})
          .node("Concat", {"flat", "vector"}, {"joined"}, {attribute("axis", std::int64_t{1})})
          .output("joined")
          .output("bright")
          .import();
  REQUIRE(model.inputs.size() == 2);
  CHECK((model.inputs[0].image && !model.inputs[1].image));
  REQUIRE(model.outputs.size() == 2);
  CHECK((!model.outputs[0].image && model.outputs[1].image));
  const std::vector<Tensor> inputs{tensor_of({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40}),
                                   tensor_of({1, 2}, {7, 8})};
  CHECK(run_model(model, inputs).data == std::vector<float>{5, 41, 7, 8});
  CHECK(output_of(model, 0, inputs).data == std::vector<float>{5, 41, 7, 8});
  CHECK(output_of(model, 1, inputs).data == std::vector<float>{2, 11, 3, 21, 4, 31, 5, 41});
}

TEST_CASE("outputs that are inputs or constants", "[fast]") {
  const ImportedModel direct =
      ModelWriter().input("x", {-1, 3}).node("Relu", {"x"}, {"y"}).output("x").output("y").import();
  const Tensor x = tensor_of({2, 3}, {-1, 2, -3, 4, -5, 6});
  CHECK(run_model(direct, {x}).data == x.data);
  CHECK(output_of(direct, 1, {x}).data == std::vector<float>{0, 2, 0, 4, 0, 6});
  CHECK(run_model(ModelWriter().input("x", {-1, 3}).output("x").import(), {x}).data == x.data);

  const ImportedModel constant = ModelWriter()
                                     .input("x", {-1, 3})
                                     .floats("scalar", {}, {5})
                                     .node("Neg", {"scalar"}, {"c"})
                                     .node("Relu", {"x"}, {"y"})
                                     .output("c")
                                     .output("y")
                                     .import();
  CHECK(run_model(constant, {x}).data == std::vector<float>{-5});
  CHECK(output_of(constant, 1, {x}).data == std::vector<float>{0, 2, 0, 4, 0, 6});
  CHECK_THROWS_WITH(
      ModelWriter().input("x", {-1, 3}).node("Shape", {"x"}, {"s"}).output("s").import(),
      Catch::Contains("output 's'") && Catch::Contains("depends on the batch"));
}

TEST_CASE("initializers listed among the inputs are no inputs", "[fast]") {
  const ImportedModel model = ModelWriter()
                                  .input("x", {1, 2})
                                  .input("w", {2, 2})
                                  .floats("w", {2, 2}, {1, 2, 3, 4})
                                  .node("MatMul", {"x", "w"}, {"y"})
                                  .output("y")
                                  .import(7);
  REQUIRE(model.inputs.size() == 1);
  CHECK(run_model(model, {tensor_of({2, 2}, {1, 0, 0, 1})}).data == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("inputs that fix different batches are refused", "[fast]") {
  CHECK_THROWS_WITH(ModelWriter()
                        .input("x", {1, 2})
                        .input("y", {3, 2})
                        .node("Add", {"x", "y"}, {"z"})
                        .output("z")
                        .import(),
                    Catch::Contains("input y: expected 1 on axis 0 (the batch)"));
}

TEST_CASE("a file that fixes the batch is read with the batch first", "[fast]") {
  // x.view(4, 6).view(1, -1, 3): the -1 must not swallow the batch.
  ModelWriter writer;
  writer.input("x", {1, 4, 6})
      .integers("rows", {2}, {4, 6})
      .integers("back", {3}, {1, -1, 3})
      .node("Reshape", {"x", "rows"}, {"a"})
      .node("Reshape", {"a", "back"}, {"b"})
      .output("b");
  const Tensor x = test::random_tensor({5, 4, 6}, 60);
  const Tensor y = run_model(writer.import(), {x});
  CHECK(y.shape == Shape{5, 8, 3});
  CHECK(y.data == x.data);
}

TEST_CASE("a class token joins patches in both kinds of file", "[fast]") {
  for (const bool fixed : {false, true}) {
    ModelWriter writer;
    writer.input("x", {fixed ? 1 : -1, 2, 3}).floats("token", {1, 1, 3}, {7, 8, 9});
    std::string token = "token";
    if (!fixed) {  // cls_token.expand(x.shape[0], -1, -1)
      const std::string batch = writer.op("Gather", {writer.op("Shape", {"x"}), writer.whole(0)});
      const std::string one = writer.op("Unsqueeze", {batch, writer.wholes({0})});
      const std::string shape = writer.op("Concat", {one, writer.wholes({-1}), writer.wholes({-1})},
                                          {attribute("axis", std::int64_t{0})});
      const std::string ones =
          writer.op("ConstantOfShape", {writer.wholes({3})},
                    {test::tensor_attribute("value", {1}, 7, test::words(std::int64_t{1}))});
      const std::string minus = writer.op("Mul", {ones, writer.whole(-1)});
      const std::string open = writer.op("Equal", {shape, minus});
      token = writer.op("Expand", {"token", writer.op("Where", {open, ones, shape})});
    }
    const ImportedModel model =
        writer.node("Concat", {token, "x"}, {"y"}, {attribute("axis", std::int64_t{1})})
            .output("y")
            .import();
    Tensor x({2, 2, 3});
    for (std::size_t i = 0; i < 12; ++i) x.data[i] = static_cast<float>(i);
    const Tensor y = run_model(model, {x});
    CHECK(y.shape == Shape{2, 3, 3});
    CHECK(y.data == std::vector<float>{7, 8, 9, 0, 1, 2, 3, 4, 5, 7, 8, 9, 6, 7, 8, 9, 10, 11});
  }
}

TEST_CASE("queries and keys and values stacked in front of the batch", "[fast]") {
  // qkv.reshape(b, 2, 3, 4).permute(2, 0, 1, 3)[1], as vision transformers take keys.
  const ImportedModel model =
      ModelWriter()
          .input("x", {-1, 2, 12})
          .integers("shape", {4}, {0, 2, 3, 4})
          .integers("one", {}, {1})
          .node("Reshape", {"x", "shape"}, {"a"})
          .node("Transpose", {"a"}, {"b"}, {attribute("perm", Ints{2, 0, 1, 3})})
          .node("Gather", {"b", "one"}, {"y"}, {attribute("axis", std::int64_t{0})})
          .output("y")
          .import();
  const Tensor x = test::random_tensor({3, 2, 12}, 61);
  const Tensor y = run_model(model, {x});
  REQUIRE(y.shape == Shape{3, 2, 4});
  for (std::size_t i = 0; i < 24; ++i) CHECK(y.data[i] == x.data[i / 4 * 12 + 4 + i % 4]);
}

TEST_CASE("heads that are merged with a batch on the second axis", "[fast]") {
  // As nn.MultiheadAttention: [t, b, 4] to [b heads, t, 2], and back.
  const auto writer_of = [](std::int64_t batch) {
    ModelWriter w;
    w.input("x", {batch, 3, 4});
    const std::string zero = attribute("axis", std::int64_t{0});
    const std::string turned = w.op("Transpose", {"x"}, {attribute("perm", Ints{1, 0, 2})});
    const std::string size = w.op("Gather", {w.op("Shape", {turned}), w.whole(1)}, {zero});
    const auto target = [&](const std::string& middle, std::int64_t last) {
      const std::string one = w.op("Unsqueeze", {middle, w.wholes({0})});
      return w.op("Concat", {w.wholes({3}), one, w.wholes({last})}, {zero});
    };
    const std::string merged =
        batch > 0 ? w.wholes({3, 2 * batch, 2}) : target(w.op("Mul", {size, w.whole(2)}), 2);
    const std::string heads =
        w.op("Transpose", {w.op("Reshape", {turned, merged})}, {attribute("perm", Ints{1, 0, 2})});
    const std::string weights = w.op("Softmax", {heads});
    const std::string back = w.op("Transpose", {weights}, {attribute("perm", Ints{1, 0, 2})});
    const std::string rows = w.op("Reshape", {back, target(size, 4)});
    return w.output(w.op("Transpose", {rows}, {attribute("perm", Ints{1, 0, 2})}));
  };
  const ImportedModel model = writer_of(-1).import();
  const Tensor x = test::random_tensor({5, 3, 4}, 62);
  const Tensor y = run_model(model, {x});
  REQUIRE(y.shape == x.shape);
  for (std::size_t i = 0; i < 60; ++i) {
    const double a = x.data[i], b = x.data[i ^ 1];
    CHECK(std::fabs(y.data[i] - 1 / (1 + std::exp(b - a))) < 0x1p-22);
  }
  // With a batch of 1 written out, [3, 2, 2] could as well be [3 b, 2, 2].
  CHECK_THROWS_WITH(writer_of(1).import(), Catch::Contains("the file has a fixed batch"));
}

/// Sizes [times * batch, ..] of the model's input "x", as exporters compute them.
std::string batch_times(ModelWriter& w, std::int64_t times, const Ints& others) {
  const std::string zero = attribute("axis", std::int64_t{0});
  const std::string batch = w.op("Gather", {w.op("Shape", {"x"}), w.whole(0)}, {zero});
  const std::string product = w.op("Mul", {batch, w.whole(times)});
  const std::string first = w.op("Unsqueeze", {product, w.wholes({0})});
  return others.empty() ? first : w.op("Concat", {first, w.wholes(others)}, {zero});
}

TEST_CASE("a padding mask and a key of zeros for heads that are merged with the batch", "[fast]") {
  // As nn.MultiheadAttention with key_padding_mask and add_zero_attn: 2 heads of [3, 2], 4 keys.
  constexpr float kHidden = 0.5f;
  ModelWriter w;
  w.input("x", {-1, 3, 4});
  const std::string heads = w.op("Reshape", {"x", batch_times(w, 2, {3, 2})});
  const std::string zero_key = w.op("ConstantOfShape", {batch_times(w, 2, {1, 2})});
  const std::string keys = w.op("Concat", {heads, zero_key}, {attribute("axis", std::int64_t{1})});
  const std::string largest = w.op(
      "ReduceMax", {"x"}, {attribute("axes", Ints{2}), attribute("keepdims", std::int64_t{0})});
  const std::string hidden = w.op("Greater", {largest, w.number(kHidden)});
  const std::string wide = w.op(
      "Expand", {w.op("Reshape", {hidden, batch_times(w, 1, {1, 1, 3})}), w.wholes({1, 2, 1, 1})});
  const std::string flat = w.op("Reshape", {wide, batch_times(w, 2, {1, 3})});
  const std::string filled =
      w.op("Where", {w.op("Cast", {flat}, {attribute("to", std::int64_t{9})}),
                     w.number(-std::numeric_limits<float>::infinity()),
                     w.op("ConstantOfShape", {w.op("Shape", {flat})})});
  const std::string seen = w.op("ConstantOfShape", {batch_times(w, 2, {1, 1})});
  const std::string mask = w.op("Concat", {filled, seen}, {attribute("axis", std::int64_t{2})});
  const std::string turned = w.op("Transpose", {keys}, {attribute("perm", Ints{0, 2, 1})});
  const std::string scores = w.op("Add", {w.op("MatMul", {heads, turned}), mask});
  const std::string weights = w.op("Softmax", {scores}, {attribute("axis", std::int64_t{-1})});
  w.output(w.op("Reshape", {weights, batch_times(w, 1, {24})}));
  const ImportedModel model = w.import();
  const Tensor x = test::random_tensor({16, 3, 4}, 63);
  check_batches(model, x);
  const Tensor y = run_model(model, {x});
  REQUIRE(y.shape == Shape{16, 24});
  const auto hides = [&](std::size_t b, std::size_t key) {
    const auto row = x.data.begin() + static_cast<std::ptrdiff_t>(b * 12 + key * 4);
    return *std::max_element(row, row + 4) > kHidden;
  };
  std::size_t hidden_keys = 0;
  for (std::size_t b = 0; b < 16; ++b) {
    for (std::size_t query = 0; query < 6; ++query) {
      const float* const head = x.data.data() + b * 12 + query / 3 * 6;
      double parts[4], sum = 0;
      for (std::size_t key = 0; key < 4; ++key) {
        double score = 0;
        for (std::size_t c = 0; key < 3 && c < 2; ++c)
          score += double{head[query % 3 * 2 + c]} * head[key * 2 + c];
        const bool hide = key < 3 && hides(b, key);
        hidden_keys += hide;
        sum += parts[key] = hide ? 0 : std::exp(score);
      }
      for (std::size_t key = 0; key < 4; ++key)
        CHECK(std::fabs(y.data[b * 24 + query * 4 + key] - parts[key] / sum) < 0x1p-21);
    }
  }
  CHECK(hidden_keys > 0);
}

TEST_CASE("constants with a multiple of the batch on one axis are as many for each sample",
          "[fast]") {
  // Of two samples; one and five give as many for each.
  const auto rows = [](ModelWriter& w, const std::string& value, std::int64_t each) {
    const ImportedModel model =
        w.output(w.op("Reshape", {value, batch_times(w, 1, {each})})).import();
    for (const std::int64_t batch : {1, 5})
      CHECK(run_model(model, {Tensor({batch, 1, 2})}).shape == Shape{batch, each});
    return run_model(model, {Tensor({2, 1, 2})}).data;
  };
  using Floats = std::vector<float>;
  const auto writer = [] { return ModelWriter().input("x", {-1, 1, 2}); };
  ModelWriter tiled = writer();
  tiled.floats("c", {2, 1}, {7, 8});
  CHECK(rows(tiled, tiled.op("Tile", {"c", batch_times(tiled, 2, {1})}), 4) ==
        Floats{7, 8, 7, 8, 7, 8, 7, 8});
  ModelWriter expanded = writer();
  expanded.floats("c", {1, 2}, {7, 8});
  CHECK(rows(expanded, expanded.op("Expand", {"c", batch_times(expanded, 2, {2})}), 4) ==
        Floats{7, 8, 7, 8, 7, 8, 7, 8});

  // Every sample would have rows for all of them.
  ModelWriter squared = writer();
  const std::string shape =
      squared.op("Concat", {squared.wholes({1}), batch_times(squared, 2, {1})},
                 {attribute("axis", std::int64_t{0})});
  CHECK_THROWS_WITH(squared.output(squared.op("Expand", {"x", shape})).import(),
                    Catch::Contains("expected the batch on one axis"));
  // A constant of the exporter's example.
  ModelWriter fixed = writer();
  fixed.floats("c", {4, 2}, Floats(8));
  CHECK_THROWS_WITH(fixed.output(fixed.op("Expand", {"c", batch_times(fixed, 1, {2})})).import(),
                    Catch::Contains("axis 0 has the batch, and the file fixes it at 4"));
}

TEST_CASE("a row of another sample is refused", "[fast]") {
  // x[arange(b), x[:, 0] - 1] as PyTorch writes it: rows of [3 b, 1] at 3 n + x[n, 0] - 1.
  ModelWriter w;
  w.input("x", {-1, 3}, 7);
  const std::string batch = w.op("Squeeze", {batch_times(w, 1, {})});
  const std::string sample = w.op("Range", {w.whole(0), batch, w.whole(1)});
  const std::string length =
      w.op("Gather", {"x", w.whole(0)}, {attribute("axis", std::int64_t{1})});
  const std::string row =
      w.op("Add", {w.op("Sub", {length, w.whole(1)}), w.op("Mul", {sample, w.whole(3)})});
  const std::string flat = w.op("Reshape", {"x", w.wholes({-1, 1})});
  const ImportedModel model =
      w.output(w.op("Gather", {flat, row}, {attribute("axis", std::int64_t{0})})).import();
  Tensor x({2, 3});
  x.data = {3, 10, 20, 2, 30, 40};
  CHECK(run_model(model, {x}).data == std::vector<float>{20, 30});
  x.data[3] = 0;
  CHECK_THROWS_WITH(run_model(model, {x}),
                    Catch::Contains("index 2 of sample 1 of the batch names row 2, of sample 0"));
  CHECK(run_model(model, {samples(x, 1, 1)}).data ==
        std::vector<float>{40});  // counted from its end
}

TEST_CASE("causal masks made by comparing positions", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 3, 3});
  const std::string range = writer.op("Range", {writer.whole(0), writer.whole(3), writer.whole(1)});
  const std::string column = writer.op("Reshape", {range, writer.wholes({3, 1})});
  const std::string seen = writer.op("LessOrEqual", {range, column});
  const std::string both = writer.op("And", {seen, writer.op("GreaterOrEqual", {column, range})});
  writer.node("Where", {both, "x", writer.number(-1)}, {"y"}).output("y");
  CHECK(run_model(writer.import(), {Tensor({1, 3, 3}, 5)}).data ==
        std::vector<float>{5, -1, -1, 5, 5, -1, 5, 5, 5});
}

TEST_CASE("a weight that makes up the file is shared by Identity and turned", "[fast]") {
  ModelWriter writer;
  std::vector<float> values(1024 * 1024);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  writer.input("x", {-1, 2}, 7).floats("wte.weight", {1024, 1024}, values);
  const std::string shared = writer.op("Identity", {"wte.weight"});
  const std::string rows = writer.op("Gather", {"wte.weight", "x"});
  const std::string turned = writer.op("Transpose", {shared}, {attribute("perm", Ints{1, 0})});
  const ImportedModel model = writer.output(writer.op("MatMul", {rows, turned})).import();
  CHECK(model.graph.parameter_count() == 2 * 1024 * 1024);
}

TEST_CASE("weights used often are refused before they fill the memory", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 512}).floats("w", {512, 512}, std::vector<float>(512 * 512, 0));
  std::string x = "x";
  for (int i = 0; i < 40; ++i) x = writer.op("MatMul", {x, "w"});
  CHECK_THROWS_WITH(writer.output(x).import(), Catch::Contains("exceed the memory"));
}

}  // namespace
}  // namespace numemu::net::import_exporters_test
