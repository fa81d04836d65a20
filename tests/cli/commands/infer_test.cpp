// numemu infer: values against hand computation, layouts, several inputs and outputs, refusals.
#include <limits>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;
using numemu::net::test::ModelWriter;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

namespace {

void array(const Scratch& s, const std::string& name, const Ints& shape, const Floats& values) {
  write_npy(s.path + "/" + name, ArrayType::float32, ArrayShape(shape.begin(), shape.end()),
            values.data());
}

Floats counted(std::int64_t n) {
  Floats values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
  return values;
}

struct Result32 {
  Ints shape;
  Floats values;
};
Result32 result(const Scratch& s, const std::string& name) {
  const Array array = read_npy(s.path + "/" + name);
  REQUIRE(array.type == ArrayType::float32);
  return {Ints(array.shape.begin(), array.shape.end()),
          Floats(array.as<float>(), array.as<float>() + array.elements())};
}

/// y = conv of [n, 2, 3, 3] with a kernel [1, 2, 2, 2] of 1 and 10, optionally under norms.
void convolution(const Scratch& s, bool norm = false) {
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
  s.file("m.onnx", model.output("y").file());
}

/// Of image i of counted(): element [c, h, w] is 18 i + 9 c + 3 h + w.
float convolved(int i, int h, int w) {
  const auto at = [&](int c, int u, int v) { return 18 * i + 9 * c + 3 * (h + u) + w + v; };
  return static_cast<float>(at(0, 0, 0) + at(0, 0, 1) + at(0, 1, 0) + at(0, 1, 1) +
                            10 * at(1, 0, 0));
}

}  // namespace

TEST_CASE("images go in and out in ONNX axis order", "[fast]") {
  const Scratch s;
  convolution(s);
  array(s, "x.npy", {3, 2, 3, 3}, counted(54));
  const Result run = s.run("infer --model m.onnx --in x.npy --out y.npy --batch 2 --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.out == "y [3, 1, 2, 2] -> y.npy, float32 on neutral.f32.sequential\n");
  CHECK(run.err.empty());
  const Result32 y = result(s, "y.npy");
  REQUIRE(y.shape == Ints{3, 1, 2, 2});
  for (int i = 0; i < 3; ++i) {
    for (int h = 0; h < 2; ++h) {
      for (int w = 0; w < 2; ++w) CHECK(y.values[4 * i + 2 * h + w] == convolved(i, h, w));
    }
  }
}

TEST_CASE("float64 inputs are rounded once, and it is said", "[fast]") {
  const Scratch s;
  convolution(s);
  std::vector<double> x(18, 1.0);
  const auto run = [&](const std::string& options) {
    write_npy(s.path + "/x.npy", ArrayType::float64, {1, 2, 3, 3}, x.data());
    return s.run("infer --model m.onnx --in x.npy --out y.npy" + options);
  };
  CHECK_THAT(run("").err, !Contains("note"));  // every number is one of float32
  x[0] = 0.1;
  const Result rounded = run("");
  CHECK(rounded.code == 0);
  CHECK_THAT(rounded.err, Contains("numemu: note: x.npy: 1 of 18 numbers rounded to float32, the "
                                   "type of network values\n"));
  CHECK(result(s, "y.npy").values[0] == 3 + 0.1f + 10);
  CHECK(run(" --quiet").err.empty());
}

TEST_CASE("a recipe decides the numerics and says what its scales saw", "[fast]") {
  const Scratch s;
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 2})
                       .floats("w", {2, 2}, {1, 0, 0, 1})
                       .node("MatMul", {"x", "w"}, {"y"})
                       .output("y")
                       .file());
  s.file("r.json",
         R"({"numemu_recipe": 1, "roles": {"weight": null, "activation": {"format": "int8"}}})");
  // The largest magnitude is 127: the scale is 1, and elements are rounded to whole numbers.
  array(s, "x.npy", {2, 2}, {127, 1.375f, -0.625f, 2.5f});
  const Result run = s.run("infer --model m.onnx --in x.npy --out y.npy --recipe r.json");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Catch::StartsWith("y [2, 2] -> y.npy, numerics of r.json\n\nlayer "));
  CHECK_THAT(run.err, Contains("scales calibrated on the first 2 of 2 samples"));
  CHECK(result(s, "y.npy").values[1] == 1);
  REQUIRE(s.run("infer --model m.onnx --in x.npy --out y.npy --quiet").code == 0);
  CHECK(result(s, "y.npy").values[1] == 1.375f);
}

TEST_CASE("NaN that a format without any makes numbers of is counted and said", "[fast]") {
  const Scratch s;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 2})
                       .floats("w", {2, 2}, {1, 0, 0, 1})
                       .node("MatMul", {"x", "w"}, {"y"})
                       .output("y")
                       .file());
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}})");
  array(s, "x.npy", {3, 2}, {1, 2, kNan, kNan, kNan, 3});
  const Result quantized =
      s.run("infer --model m.onnx --in x.npy --out y.npy --recipe r.json --json");
  INFO(quantized.err);
  REQUIRE(quantized.code == 0);
  CHECK_THAT(
      quantized.err,
      Contains("the inputs hold 3 NaN, and 2 of the 2 samples with NaN have outputs without"));
  CHECK(Json::parse(quantized.out)["outputs"][0]["nan_samples_without_nan_output"] == 2);
  const Result float32 = s.run("infer --model m.onnx --in x.npy --out y.npy --json");
  CHECK_THAT(float32.err, !Contains("the inputs hold") &&
                              Contains("note: 2 of 3 samples of y have NaN or infinite numbers"));
  CHECK(Json::parse(float32.out)["outputs"][0]["not_finite"]["samples_not_finite"] == 2);
  CHECK(float32.out.find("nan_samples") == std::string::npos);
}

TEST_CASE("outputs that are not finite are counted, and where they first arise is said", "[fast]") {
  const Scratch s;
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 2})
                       .floats("one.weight", {2, 2}, {1, 1, 1, 1})
                       .floats("two.weight", {2, 2}, {1, -1, 1, -1})
                       .node("MatMul", {"x", "one.weight"}, {"h"})
                       .node("MatMul", {"h", "two.weight"}, {"y"})
                       .output("y")
                       .file());
  array(s, "x.npy", {3, 2}, {1, 2, 3e38f, 3e38f, 1, 1});
  const Result wide = s.run("infer --model m.onnx --in x.npy --out y.npy --json --quiet");
  REQUIRE(wide.code == 0);
  CHECK(wide.err ==
        "note: 1 of 3 samples of y have NaN or infinite numbers (NaN 0, infinite 2 of 6)\n"
        "note: they first occur in layer one: 2 of 6 results: accumulator overflow (float32, at "
        "most 3.4e+38)\n");
  const Json counts = Json::parse(wide.out)["outputs"][0]["not_finite"];
  CHECK(counts["samples_not_finite"] == 1);
  CHECK(counts["outputs"] == Json{{"of", 6}, {"nan", 0}, {"infinite", 2}});
  CHECK(counts["layers"][1]["inherited"] == 2);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "float16",
    "overflow": "ieee"}}})");
  const Result narrow =
      s.run("infer --model m.onnx --in x.npy --out y.npy --json --quiet --recipe r.json");
  REQUIRE(narrow.code == 0);
  CHECK_THAT(narrow.err, Contains("layer one"));
  // The weight is released before the second batch, in which the sum overflows.
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  const std::string command =
      "infer --model m.onnx --in x.npy --out y.npy --json --quiet --recipe r.json";
  const Result apart = s.run(command + " --batch 1 --outputs-only");
  REQUIRE(apart.code == 0);
  CHECK_THAT(apart.err, Contains("layer one: 2 of 6 results"));
  CHECK(apart.err == s.run(command).err);
  // All outputs are finite: no message.
  array(s, "x.npy", {1, 2}, {1, 2});
  CHECK(s.run("infer --model m.onnx --in x.npy --out y.npy --quiet").err.empty());
}

TEST_CASE("infer notes what eval notes of a recipe", "[fast]") {
  const Scratch s;
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 2})
                       .floats("one.weight", {2, 2}, {1, 1, 1, 1})
                       .node("MatMul", {"x", "one.weight"}, {"y"})
                       .output("y")
                       .file());
  array(s, "x.npy", {2, 2}, {1, -2, 3, 4});
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"},
    "activation": {"format": "uint8"}}})");
  const std::string command = "infer --model m.onnx --in x.npy --out y.npy --recipe r.json --json";
  const Result run = s.run(command);
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err,
             Contains("note: blocks of ") && Contains("mxfp4") &&
                 Contains("note: uint8 has no negative numbers, which become its lowest value: "
                          "activation of one (25.0 % negative)\n"));
  CHECK(Json::parse(run.out)["notes"].size() == 2);
  s.file("staged.json", R"({"numemu_recipe": 1, "penalty": "kure", "stages": [{"from": {"epoch": 1},
    "patch": {"roles": {"weight": {"format": "mxfp4"}, "activation": {"format": "uint8"}}}}]})");
  const Json staged = Json::parse(
      s.run("infer --model m.onnx --in x.npy --out z.npy --recipe staged.json --json").out);
  REQUIRE(staged["notes"].size() == 4);
  CHECK(staged["notes"][0] == "The recipe has stages; this is the last one, stage 1.");
  CHECK(staged["notes"][1] == "Without effect in inference: penalty.");
  CHECK(read_file(s.path + "/z.npy") == read_file(s.path + "/y.npy"));
  CHECK(s.run(command + " --quiet").err.empty());
  CHECK(Json::parse(s.run("infer --model m.onnx --in x.npy --out y.npy --json").out)["notes"]
            .empty());
}
