// infer: values against hand computation, layouts, several inputs and outputs, what is told.
#include <cmath>
#include <limits>

#include "api/networks.hpp"
#include "emu/net/model/safetensors.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace infer_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;
using numemu::net::test::ModelWriter;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Floats counted(std::int64_t n) {
  Floats values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
  return values;
}

/// y = conv of [n, 2, 3, 3] with a kernel [1, 2, 2, 2] of 1 and 10, optionally under norms.
std::string convolution(const Workplace& w, bool norm = false) {
  ModelWriter model;
  model.input("image", {-1, 2, 3, 3})
      .floats("c.weight", {1, 2, 2, 2}, {1, 1, 1, 1, 10, 0, 0, 0})
      .node("Conv", {"image", "c.weight"}, {norm ? "c" : "y"});
  if (norm) {
    // 2 (x - 1) / sqrt(3 + 1) + 5 = x + 4
    model.floats("gain", {1}, {2})
        .floats("shift", {1}, {5})
        .floats("mean", {1}, {1})
        .floats("variance", {1}, {3})
        .node("BatchNormalization", {"c", "gain", "shift", "mean", "variance"}, {"y"},
              {net::test::attribute("epsilon", 1.0f)});
  }
  return w.file("m.onnx", model.output("y").file());
}

/// Of image i of counted(): element [c, h, w] is 18 i + 9 c + 3 h + w.
float convolved(int i, int h, int w) {
  const auto at = [&](int c, int u, int v) { return 18 * i + 9 * c + 3 * (h + u) + w + v; };
  return static_cast<float>(at(0, 0, 0) + at(0, 0, 1) + at(0, 1, 0) + at(0, 1, 1) +
                            10 * at(1, 0, 0));
}

api::InferRequest two_inputs(const Workplace& w) {
  return {.model = w.file("two.onnx", ModelWriter()
                                          .input("a", {-1, 3})
                                          .input("b", {-1, 3})
                                          .node("Add", {"a", "b"}, {"sum"})
                                          .node("Mul", {"a", "b"}, {"product"})
                                          .output("sum")
                                          .output("product")
                                          .file()),
          .in = {"b=" + w.array("b.npy", {2, 3}, {10, 20, 30, 40, 50, 60}),
                 "a=" + w.array("a.npy", {2, 3}, {1, 2, 3, 4, 5, 6})}};
}

/// x, two columns, times the identity.
std::string identity(const Workplace& w) {
  return w.file("m.onnx", ModelWriter()
                              .input("x", {-1, 2})
                              .floats("w", {2, 2}, {1, 0, 0, 1})
                              .node("MatMul", {"x", "w"}, {"y"})
                              .output("y")
                              .file());
}

}  // namespace

TEST_CASE("images go in and out in ONNX axis order", "[fast]") {
  const Workplace w;
  const api::Inferred got = api::infer({.model = convolution(w),
                                        .in = {w.array("x.npy", {3, 2, 3, 3}, counted(54))},
                                        .keep = {"y"},
                                        .batch = 2},
                                       w.context);
  const net::Tensor& y = got.outputs.at(0).values;
  REQUIRE(y.shape == Ints{3, 1, 2, 2});
  for (int i = 0; i < 3; ++i) {
    for (int h = 0; h < 2; ++h) {
      for (int v = 0; v < 2; ++v) CHECK(y.data[4 * i + 2 * h + v] == convolved(i, h, v));
    }
  }
  CHECK(w.said.empty());
  CHECK(w.warned.empty());
}

TEST_CASE("float64 inputs are rounded once, and it is said", "[fast]") {
  Workplace w;
  std::vector<double> x(18, 1.0);
  const auto infer = [&] {
    write_npy(w / "x.npy", ArrayType::float64, {1, 2, 3, 3}, x.data());
    w.said.clear();
    return api::infer({.model = convolution(w), .in = {w / "x.npy"}, .keep = {"y"}}, w.context);
  };
  infer();
  CHECK(w.said.empty());  // every number is one of float32
  x[0] = 0.1;
  CHECK(infer().outputs.at(0).values.data[0] == 3 + 0.1f + 10);
  CHECK_THAT(w.said, Contains("x.npy: 1 of 18 numbers rounded to float32, the type of network "
                              "values\n"));
}

TEST_CASE("how many samples go at a time changes no bit", "[fast]") {
  const Workplace w;
  Floats x = counted(7 * 18);
  for (float& v : x) v /= 7;
  api::InferRequest asked{
      .model = convolution(w), .in = {"image=" + w.array("x.npy", {7, 2, 3, 3}, x)}, .keep = {"y"}};
  std::vector<Floats> all;
  for (const std::int64_t batch : {1, 3, 7, 100}) {
    asked.batch = batch;
    all.push_back(api::infer(asked, w.context).outputs.at(0).values.data);
    CHECK(all.back() == all.front());
  }
}

TEST_CASE("arrays have the samples on the axis that the file calls batch", "[fast]") {
  const Workplace w;
  ModelWriter model;
  model.input("x", {2, -1, 1}, 1, "batch").floats("w", {1, 2}, {1, 10});
  const api::InferRequest asked{
      .model = w.file("m.onnx", model.node("MatMul", {"x", "w"}, {"y"}).output("y").file()),
      .in = {w.array("x.npy", {2, 3, 1}, counted(6))},
      .keep = {"y"},
      .batch = 2};
  const net::Tensor y = api::infer(asked, w.context).outputs.at(0).values;
  CHECK(y.shape == Ints{2, 3, 2});
  CHECK(y.data == Floats{0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50});
  w.array("x.npy", {3, 2, 1}, counted(6));
  CHECK_THAT(message_of([&] { api::infer(asked, w.context); }),
             Contains("x.npy: expected an array of shape [2, 2, 1] for x, found [3, 2, 1]"));
  w.array("x.npy", {2, 0, 1}, {});
  CHECK_THAT(message_of([&] { api::infer(asked, w.context); }),
             Contains("x.npy: expected samples along axis 1"));
}

TEST_CASE("named inputs and outputs find their places in any order, in files or without",
          "[fast]") {
  const Workplace w;
  api::InferRequest asked = two_inputs(w);
  asked.out = {"product=" + (w / "p.npy"), w / "s.npy"};
  asked.batch = 1;
  const api::Inferred got = api::infer(asked, w.context);
  REQUIRE(got.outputs.size() == 2);
  CHECK(got.outputs[0].name == "product");
  CHECK(got.outputs[0].file == w / "p.npy");
  CHECK(got.outputs[1].name == "sum");
  CHECK(got.outputs[1].values.data == Floats{11, 22, 33, 44, 55, 66});
  const Array product = read_npy(w / "p.npy");
  CHECK(product.shape == ArrayShape{2, 3});
  CHECK(Floats(product.as<float>(), product.as<float>() + 6) == Floats{10, 40, 90, 160, 250, 360});

  asked.out = {"sum=" + (w / "y.safetensors"), "product=" + (w / "y.safetensors")};
  api::infer(asked, w.context);
  const net::Checkpoint file = net::read_safetensors(w / "y.safetensors");
  REQUIRE(file.tensors.size() == 2);
  for (const net::NamedTensor& tensor : file.tensors)
    CHECK(tensor.value.data == got.outputs[tensor.name == "sum" ? 1 : 0].values.data);
  asked.out = {w / "one.SafeTensors"};
  api::infer(asked, w.context);
  CHECK(net::read_safetensors(w / "one.SafeTensors").tensors.at(0).name == "sum");
}

TEST_CASE("outputs that are inputs or one value twice are given", "[fast]") {
  const Workplace w;
  const api::Inferred got =
      api::infer({.model = w.file("m.onnx", ModelWriter()
                                                .input("x", {-1, 2})
                                                .node("Relu", {"x"}, {"y"})
                                                .node("Identity", {"y"}, {"z"})
                                                .output("y")
                                                .output("x")
                                                .output("z")
                                                .file()),
                  .in = {w.array("x.npy", {1, 2}, {-1, 2})},
                  .keep = {"y", "x", "z"}},
                 w.context);
  REQUIRE(got.outputs.size() == 3);
  CHECK(got.outputs[0].values.data == Floats{-1, 2});
  CHECK(got.outputs[1].values.data == Floats{0, 2});
  CHECK(got.outputs[2].values.data == Floats{0, 2});
}

TEST_CASE("extents that the file leaves open follow from the array", "[fast]") {
  const Workplace w;
  const std::string x = w.array("x.npy", {2, 1, 1, 3}, {1, 2, 3, 4, 5, 6});
  for (const char* name : {"", "x="}) {
    const api::Inferred got =
        api::infer({.model = w.file("m.onnx", ModelWriter()
                                                  .input("x", {-1, 1, -1, -1})
                                                  .node("GlobalAveragePool", {"x"}, {"y"})
                                                  .output("y")
                                                  .file()),
                    .in = {name + x},
                    .keep = {"y"}},
                   w.context);
    CHECK(got.outputs.at(0).values.shape == Ints{2, 1, 1, 1});
    CHECK(got.outputs.at(0).values.data == Floats{2, 5});
  }
}

TEST_CASE("batch normalisation is folded where asked", "[fast]") {
  const Workplace w;
  api::InferRequest asked{.model = convolution(w, true),
                          .in = {w.array("x.npy", {1, 2, 3, 3}, counted(18))},
                          .keep = {"y"}};
  for (const bool fold : {false, true}) {
    asked.fold_batch_norm = fold;
    const Floats y = api::infer(asked, w.context).outputs.at(0).values.data;
    REQUIRE(y.size() == 4);
    for (int p = 0; p < 4; ++p) CHECK(y[p] == convolved(0, p / 2, p % 2) + 4);
  }
}

TEST_CASE("a recipe decides the numerics and says what its scales saw", "[fast]") {
  const Workplace w;
  // The largest magnitude is 127: the scale is 1, and elements are rounded to whole numbers.
  api::InferRequest asked{
      .model = identity(w),
      .recipe = w.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": null,
        "activation": {"format": "int8"}}})"),
      .in = {w.array("x.npy", {2, 2}, {127, 1.375f, -0.625f, 2.5f})},
      .keep = {"y"}};
  CHECK(api::infer(asked, w.context).outputs.at(0).values.data[1] == 1);
  CHECK_THAT(w.said, Contains("scales calibrated on the first 2 of 2 samples\n"));
  asked.recipe.clear();
  const api::Inferred float32 = api::infer(asked, w.context);
  CHECK(float32.outputs.at(0).values.data[1] == 1.375f);
  CHECK_FALSE(float32.recipe);
  CHECK_FALSE(float32.calibration);
  CHECK_FALSE(float32.noise);
}

TEST_CASE("NaN that a format without any makes numbers of is counted", "[fast]") {
  const Workplace w;
  api::InferRequest asked{
      .model = identity(w),
      .recipe =
          w.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}})"),
      .in = {w.array("x.npy", {3, 2}, {1, 2, kNan, kNan, kNan, 3})},
      .keep = {"y"}};
  const api::Inferred quantized = api::infer(asked, w.context);
  CHECK(quantized.nan.elements == 3);
  CHECK(quantized.nan.samples == 2);
  CHECK(quantized.nan.hidden == 2);
  asked.recipe.clear();
  const api::Inferred float32 = api::infer(asked, w.context);
  CHECK(float32.nan.hidden == 0);
  CHECK(float32.outputs.at(0).samples_not_finite == 2);
}

TEST_CASE("outputs that are not finite are counted by layer, also where weights are released",
          "[fast]") {
  const Workplace w;
  api::InferRequest asked{
      .model = w.file("m.onnx", ModelWriter()
                                    .input("x", {-1, 2})
                                    .floats("one.weight", {2, 2}, {1, 1, 1, 1})
                                    .floats("two.weight", {2, 2}, {1, -1, 1, -1})
                                    .node("MatMul", {"x", "one.weight"}, {"h"})
                                    .node("MatMul", {"h", "two.weight"}, {"y"})
                                    .output("y")
                                    .file()),
      .in = {w.array("x.npy", {3, 2}, {1, 2, 3e38f, 3e38f, 1, 1})},
      .keep = {"y"}};
  const auto lost = [&] { return api::infer(asked, w.context).outputs.at(0).not_finite; };
  const api::Inferred::Output output = api::infer(asked, w.context).outputs.at(0);
  REQUIRE(output.not_finite);
  CHECK(output.samples_not_finite == 1);
  CHECK(json_of(output.not_finite->outputs) == Json{{"of", 6}, {"nan", 0}, {"infinite", 2}});
  CHECK(output.not_finite->layers.at(1).inherited == 2);
  // The weight is released before the second batch, in which the sum overflows.
  asked.recipe =
      w.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  const auto whole = lost();
  REQUIRE(whole);
  CHECK(whole->layers.at(0).name == "one");
  CHECK(whole->layers.at(0).infinite == 2);
  asked.batch = 1;
  asked.noise = false;
  CHECK(json_of(lost()) == json_of(whole));
  w.array("x.npy", {1, 2}, {1, 2});
  CHECK_FALSE(lost());
}

TEST_CASE("infer notes what eval notes of a recipe", "[fast]") {
  Workplace w;
  api::InferRequest asked{.model = w.file("m.onnx", ModelWriter()
                                                        .input("x", {-1, 2})
                                                        .floats("one.weight", {2, 2}, {1, 1, 1, 1})
                                                        .node("MatMul", {"x", "one.weight"}, {"y"})
                                                        .output("y")
                                                        .file()),
                          .recipe = w.file("r.json", R"({"numemu_recipe": 1, "roles": {
                            "weight": {"format": "mxfp4"}, "activation": {"format": "uint8"}}})"),
                          .in = {w.array("x.npy", {2, 2}, {1, -2, 3, 4})},
                          .keep = {"y"}};
  const api::Inferred plain = api::infer(asked, w.context);
  REQUIRE(plain.notes.size() == 2);
  CHECK_THAT(plain.notes[0], Contains("blocks of ") && Contains("mxfp4"));
  CHECK(plain.notes[1] ==
        "uint8 has no negative numbers, which become its lowest value: activation of one (25.0 % "
        "negative)");
  CHECK_THAT(w.said, Contains("note: " + plain.notes[0] + "\nnote: " + plain.notes[1] + "\n"));
  asked.recipe = w.file("staged.json", R"({"numemu_recipe": 1, "penalty": "kure",
    "stages": [{"from": {"epoch": 1}, "patch": {"roles": {"weight": {"format": "mxfp4"},
                                                          "activation": {"format": "uint8"}}}}]})");
  const api::Inferred staged = api::infer(asked, w.context);
  REQUIRE(staged.notes.size() == 4);
  CHECK(staged.notes[0] == "The recipe has stages; this is the last one, stage 1.");
  CHECK(staged.notes[1] == "Without effect in inference: penalty.");
  CHECK(staged.outputs.at(0).values.data == plain.outputs.at(0).values.data);
  asked.recipe.clear();
  CHECK(api::infer(asked, w.context).notes.empty());
}

TEST_CASE("a shipped network takes arrays of its own layout, by name or file", "[fast]") {
  const Workplace w;
  api::InferRequest asked{.model = "mlp",
                          .in = {w.array("x.npy", {2, 28, 28, 1}, Floats(2 * 784, 0.5f))},
                          .keep = {"output"}};
  const net::Tensor y = api::infer(asked, w.context).outputs.at(0).values;
  CHECK(y.shape == Ints{2, 10});
  CHECK(Floats(y.data.begin(), y.data.begin() + 10) == Floats(y.data.begin() + 10, y.data.end()));
  asked.model = NUMEMU_SOURCE "/data/mlp-glyphs.safetensors";
  asked.in[0] = "input=" + asked.in[0];
  CHECK(api::infer(asked, w.context).outputs.at(0).values.data == y.data);
}

TEST_CASE("edges round every output, not the last value alone", "[fast]") {
  const Workplace w;
  const auto hidden = [&](bool more) {
    ModelWriter model;
    model.input("x", {-1, 2}).floats("w", {2, 2}, {0.3f, 0.7f, -0.9f, 0.4f});
    model.node("MatMul", {"x", "w"}, {"h"}).output("h");
    if (more) model.node("Sigmoid", {"h"}, {"y"}).output("y");
    api::InferRequest asked;
    asked.model = w.file("m.onnx", model.file());
    asked.in = {w.array("x.npy", {3, 2}, {0.1f, 0.2f, 0.35f, 0.47f, -0.6f, 0.77f})};
    asked.recipe = w.file("r.json", R"({"numemu_recipe": 1, "edges": "static", "roles": {
        "weight": {"format": "int8"}, "activation": {"format": "int8"}}})");
    asked.keep = {"h"};
    return api::infer(asked, w.context).outputs.at(0).values.data;
  };
  CHECK(hidden(true) == hidden(false));
}

namespace {

constexpr std::int64_t kSamples = 64, kWidth = 48;

Floats numbers(std::int64_t n, float scale) {
  Floats out;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t k = i + 3 * n;
    out.push_back(scale * static_cast<float>(std::sin(0.7 * static_cast<double>(k * k % 1009))));
  }
  return out;
}

std::string rows(const Workplace& w, const std::string& name, const Floats& values) {
  return w.array(name, {static_cast<std::int64_t>(values.size()) / kWidth, kWidth}, values);
}

/// Two layers with a ReLU between them, under int8.
api::InferRequest two_layers(const Workplace& w) {
  return {.model = w.file(
              "m.onnx", ModelWriter()
                            .input("x", {-1, kWidth})
                            .floats("one.weight", {kWidth, kWidth}, numbers(kWidth * kWidth, 0.2f))
                            .floats("two.weight", {kWidth, 8}, numbers(kWidth * 8, 0.3f))
                            .node("MatMul", {"x", "one.weight"}, {"h"})
                            .node("Relu", {"h"}, {"r"})
                            .node("MatMul", {"r", "two.weight"}, {"y"})
                            .output("y")
                            .file()),
          .recipe = w.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"},
            "activation": {"format": "int8"}}, "calibrate": {"samples": 8}})"),
          .in = {rows(w, "x.npy", numbers(kSamples * kWidth, 1))},
          .keep = {"y"}};
}

}  // namespace

TEST_CASE("infer gives the noise of every layer beside its prediction", "[fast]") {
  const Workplace w;
  api::InferRequest asked = two_layers(w);
  const api::Inferred quantized = api::infer(asked, w.context);
  REQUIRE(quantized.noise);
  const experiments::Row& noise = quantized.noise->row;
  REQUIRE(noise.layers.size() == 2);
  for (const experiments::RowLayer& layer : noise.layers) {
    CHECK(layer.sqnr_db.value() > 20);
    // "holds" needs the whole interval within 1 dB.
    const double predicted = layer.predicted_db.value();
    CHECK(std::abs(*layer.sqnr_db - predicted) < 1);
    const bool inside = layer.sqnr_ci95.value().low.value() >= predicted - 1 &&
                        layer.sqnr_ci95->high.value() <= predicted + 1;
    CHECK(layer.verdict == (inside ? Verdict::holds : Verdict::undecided));
  }
  CHECK(quantized.noise->samples == kSamples);
  asked.predictions = false;
  const experiments::Row measured = api::infer(asked, w.context).noise.value().row;
  CHECK(measured.layers.at(0).predicted_db.is_null);
  CHECK(measured.layers[0].sqnr_db == noise.layers[0].sqnr_db);
  asked.noise = false;
  const api::Inferred alone = api::infer(asked, w.context);
  CHECK_FALSE(alone.noise);
  CHECK(alone.outputs.at(0).values.data == quantized.outputs.at(0).values.data);
  // The output's figure again, from the arrays.
  asked.recipe.clear();
  const api::Inferred exact = api::infer(asked, w.context);
  double signal = 0, error = 0;
  for (std::size_t i = 0; i < exact.outputs.at(0).values.data.size(); ++i) {
    const double x = exact.outputs[0].values.data[i];
    const double e = quantized.outputs.at(0).values.data[i] - x;
    signal += x * x;
    error += e * e;
  }
  CHECK(noise.metrics.sqnr_db.value() == Approx(10 * std::log10(signal / error)).epsilon(1e-5));
}

TEST_CASE("arrays of another batch than the file fixes: the message says what to do", "[fast]") {
  const Workplace w;
  // A class token that was repeated for the batch of two.
  const std::string model = w.file(
      "m.onnx",
      ModelWriter()
          .input("x", {2, 1, 3})
          .floats("token", {2, 1, 3}, counted(6))
          .node("Concat", {"token", "x"}, {"y"}, {net::test::attribute("axis", std::int64_t{1})})
          .output("y")
          .file());
  const auto asked = [&](std::int64_t samples) -> api::InferRequest {
    return {.model = model,
            .in = {w.array("x.npy", {samples, 1, 3}, counted(3 * samples))},
            .keep = {"y"}};
  };
  CHECK(api::infer(asked(2), w.context).outputs.at(0).values.data ==
        Floats{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK_THAT(message_of([&] { api::infer(asked(5), w.context); }),
             Catch::EndsWith("; the file has a batch of 2, the arrays of 5, which may be why: "
                             "run 2 at a time, or export the network with an open batch "
                             "(dynamic_axes)"));
}

TEST_CASE("of one sample infer decides no prediction of SQNR", "[fast]") {
  const Workplace w;
  const api::InferRequest asked = two_layers(w);
  rows(w, "x.npy", numbers(kWidth, 1));
  const api::Inferred::Noise noise = api::infer(asked, w.context).noise.value();
  CHECK(noise.samples == 1);
  CHECK(noise.row.metrics.sqnr_error_db.is_null);
  CHECK(noise.row.predicted.verdict == Verdict::undecided);
  REQUIRE(noise.row.layers.size() == 2);
  for (const experiments::RowLayer& layer : noise.row.layers)
    CHECK(layer.verdict == Verdict::undecided);
}

TEST_CASE("infer tells which samples calibrated its scales, and takes others", "[fast]") {
  Workplace w;
  api::InferRequest asked = two_layers(w);
  asked.noise = false;
  const api::Inferred own = api::infer(asked, w.context);
  REQUIRE(own.calibration);
  CHECK(own.calibration->samples == 8);
  CHECK(own.calibration->available == kSamples);
  CHECK(own.calibration->from == asked.in[0]);
  CHECK(own.calibration->digest.empty());  // that of the inputs
  // The same samples from another file give the same scales; samples twice as large do not.
  asked.calibrate_on = {rows(w, "first.npy", numbers(kSamples * kWidth, 1))};
  w.said.clear();
  CHECK(api::infer(asked, w.context).outputs.at(0).values.data == own.outputs.at(0).values.data);
  CHECK(w.said == "scales calibrated on the first 8 of 64 samples of " + (w / "first.npy") + "\n");
  asked.calibrate_on = {"x=" + rows(w, "large.npy", numbers(8 * kWidth, 2))};
  const api::Inferred large = api::infer(asked, w.context);
  CHECK(large.calibration->available == 8);
  CHECK(large.calibration->digest.size() == 16);
  CHECK(large.outputs.at(0).values.data != own.outputs.at(0).values.data);
}

TEST_CASE("samples with NaN calibrate nothing and are left out of SQNR", "[fast]") {
  const Workplace w;
  const api::InferRequest asked = two_layers(w);
  Floats x = numbers(4 * kWidth, 1);
  rows(w, "x.npy", {x.begin() + 2 * kWidth, x.end()});
  const experiments::Row clean = api::infer(asked, w.context).noise.value().row;
  x[5] = kNan;
  x[kWidth] = HUGE_VALF;
  rows(w, "x.npy", x);
  const api::Inferred got = api::infer(asked, w.context);
  CHECK(w.warned ==
        "note: scales calibrated on 2 of 4 samples, 2 with NaN or infinite numbers left out; the "
        "first is sample 0\n");
  CHECK(got.calibration->samples == 2);
  CHECK(got.calibration->not_finite == 2);
  CHECK(got.noise.value().samples == 2);
  CHECK(got.noise->row.metrics.sqnr_db == clean.metrics.sqnr_db);
  CHECK(got.noise->row.layers.at(0).predicted_db == clean.layers.at(0).predicted_db);
  CHECK_THAT(Json(got.notes).dump(),
             Contains("SQNR and predictions leave out 2 of the first 4 samples"));
  rows(w, "x.npy", Floats(2 * kWidth, kNan));
  CHECK_THAT(message_of([&] { api::infer(asked, w.context); }),
             Contains("x.npy: expected finite numbers in one of the first 2 samples at least"));
}

TEST_CASE("a padding mask leaves no sample out, also beside one of full length", "[fast]") {
  const Workplace w;
  api::InferRequest asked = two_layers(w);
  asked.model =
      w.file("m.onnx", ModelWriter()
                           .input("x", {-1, kWidth})
                           .input("mask", {-1, kWidth})
                           .floats("one.weight", {kWidth, kWidth}, numbers(kWidth * kWidth, 0.2f))
                           .floats("two.weight", {kWidth, 8}, numbers(kWidth * 8, 0.3f))
                           .node("MatMul", {"x", "one.weight"}, {"h"})
                           .node("Add", {"h", "mask"}, {"a"})
                           .node("Relu", {"a"}, {"r"})
                           .node("MatMul", {"r", "two.weight"}, {"y"})
                           .output("y")
                           .file());
  Floats mask(4 * kWidth, 0);  // the last sample has its full length
  for (const std::size_t i : {0, 1, 2}) mask[i * kWidth + 3] = -HUGE_VALF;
  asked.in = {"x=" + rows(w, "x.npy", numbers(4 * kWidth, 1)), "mask=" + rows(w, "mask.npy", mask)};
  const api::Inferred got = api::infer(asked, w.context);
  CHECK(got.calibration->samples == 4);
  CHECK(got.calibration->not_finite == 0);
}

}  // namespace infer_test
