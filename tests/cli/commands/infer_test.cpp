// numemu infer: values against hand computation, layouts, several inputs and outputs, refusals.
#include <filesystem>
#include <limits>

#include "emu/net/model/safetensors.hpp"
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

void two_inputs(const Scratch& s) {
  s.file("two.onnx", ModelWriter()
                         .input("a", {-1, 3})
                         .input("b", {-1, 3})
                         .node("Add", {"a", "b"}, {"sum"})
                         .node("Mul", {"a", "b"}, {"product"})
                         .output("sum")
                         .output("product")
                         .file());
  array(s, "a.npy", {2, 3}, {1, 2, 3, 4, 5, 6});
  array(s, "b.npy", {2, 3}, {10, 20, 30, 40, 50, 60});
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

TEST_CASE("how many samples go at a time changes no bit", "[fast]") {
  const Scratch s;
  convolution(s);
  Floats x = counted(7 * 18);
  for (float& v : x) v /= 7;
  array(s, "x.npy", {7, 2, 3, 3}, x);
  std::vector<Floats> all;
  for (const char* batch : {"1", "3", "7", "100"}) {
    REQUIRE(s.run(std::string("infer --model m.onnx --in image=x.npy --out y=y.npy --batch ") +
                  batch + " --quiet")
                .code == 0);
    all.push_back(result(s, "y.npy").values);
    CHECK(all.back() == all.front());
  }
}

TEST_CASE("arrays have the samples on the axis that the file calls batch", "[fast]") {
  const Scratch s;
  ModelWriter model;
  model.input("x", {2, -1, 1}, 1, "batch").floats("w", {1, 2}, {1, 10});
  s.file("m.onnx", model.node("MatMul", {"x", "w"}, {"y"}).output("y").file());
  array(s, "x.npy", {2, 3, 1}, counted(6));
  REQUIRE(s.run("infer --model m.onnx --in x.npy --out y.npy --batch 2").code == 0);
  const Result32 y = result(s, "y.npy");
  CHECK(y.shape == Ints{2, 3, 2});
  CHECK(y.values == Floats{0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50});
  array(s, "x.npy", {3, 2, 1}, counted(6));
  CHECK_THAT(s.run("infer --model m.onnx --in x.npy --out y.npy").err,
             Contains("x.npy: expected an array of shape [2, 2, 1] for x, found [3, 2, 1]"));
  array(s, "x.npy", {2, 0, 1}, {});
  check_refused(s.run("infer --model m.onnx --in x.npy --out y.npy"),
                "x.npy: expected samples along axis 1");
}

TEST_CASE("named inputs and outputs find their places in any order", "[fast]") {
  const Scratch s;
  two_inputs(s);
  const Result run = s.run(
      "infer --model two.onnx --in b=b.npy --in a=a.npy --out product=p.npy --out s.npy --batch 1 "
      "--json --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(result(s, "s.npy").values == Floats{11, 22, 33, 44, 55, 66});
  CHECK(result(s, "p.npy").values == Floats{10, 40, 90, 160, 250, 360});
  const Json expected = {{{"output", "product"}, {"file", "p.npy"}, {"shape", {2, 3}}},
                         {{"output", "sum"}, {"file", "s.npy"}, {"shape", {2, 3}}}};
  const Json outputs = Json::parse(run.out)["outputs"];
  REQUIRE(outputs.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const char* key : {"output", "file", "shape"}) CHECK(outputs[i][key] == expected[i][key]);
  }
}

TEST_CASE("outputs that are inputs or one value twice are written", "[fast]") {
  const Scratch s;
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 2})
                       .node("Relu", {"x"}, {"y"})
                       .node("Identity", {"y"}, {"z"})
                       .output("y")
                       .output("x")
                       .output("z")
                       .file());
  array(s, "x.npy", {1, 2}, {-1, 2});
  const Result run =
      s.run("infer --model m.onnx --in x.npy --out y=y.npy --out x=x2.npy --out z=z.npy --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(result(s, "y.npy").values == Floats{0, 2});
  CHECK(result(s, "x2.npy").values == Floats{-1, 2});
  CHECK(result(s, "z.npy").values == Floats{0, 2});
}

TEST_CASE("extents that the file leaves open follow from the array", "[fast]") {
  const Scratch s;
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 1, -1, -1})
                       .node("GlobalAveragePool", {"x"}, {"y"})
                       .output("y")
                       .file());
  array(s, "x.npy", {2, 1, 1, 3}, {1, 2, 3, 4, 5, 6});
  for (const char* name : {"", "x="}) {
    const Result run =
        s.run("infer --model m.onnx --in " + std::string(name) + "x.npy --out y.npy --quiet");
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(result(s, "y.npy").shape == Ints{2, 1, 1, 1});
    CHECK(result(s, "y.npy").values == Floats{2, 5});
  }
}

TEST_CASE("batch normalisation is folded where asked", "[fast]") {
  const Scratch s;
  convolution(s, true);
  array(s, "x.npy", {1, 2, 3, 3}, counted(18));
  for (const char* fold : {"", " --fold-batch-norm"}) {
    REQUIRE(s.run("infer --model m.onnx --in x.npy --out y.npy --quiet" + std::string(fold)).code ==
            0);
    const Floats y = result(s, "y.npy").values;
    REQUIRE(y.size() == 4);
    for (int p = 0; p < 4; ++p) CHECK(y[p] == convolved(0, p / 2, p % 2) + 4);
  }
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

TEST_CASE("outputs go into safetensors, several into one file", "[fast]") {
  const Scratch s;
  two_inputs(s);
  const std::string run = "infer --model two.onnx --in a=a.npy --in b=b.npy --quiet ";
  REQUIRE(s.run(run + "--out sum=sum.npy --out product=product.npy").code == 0);
  REQUIRE(s.run(run + "--out sum=y.safetensors --out product=y.safetensors").code == 0);
  const net::Checkpoint file = net::read_safetensors(s.path + "/y.safetensors");
  REQUIRE(file.tensors.size() == 2);
  for (const net::NamedTensor& tensor : file.tensors) {
    const Result32 expected = result(s, tensor.name + ".npy");
    CHECK(tensor.value.shape == expected.shape);
    CHECK(tensor.value.data == expected.values);
  }
  REQUIRE(s.run(run + "--out one.safetensors").code == 0);
  CHECK(net::read_safetensors(s.path + "/one.safetensors").tensors.at(0).name == "sum");
  REQUIRE(s.run(run + "--out one.SafeTensors").code == 0);
  CHECK(read_file(s.path + "/one.SafeTensors") == read_file(s.path + "/one.safetensors"));
  check_refused(s.run(run + "--out y.npz"), "y.npz: expected a .npy or .safetensors file");
  check_refused(s.run(run + "--out sum=y.npy --out product=y.npy"), "found y.npy twice");
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

TEST_CASE("a shipped network takes arrays of its own layout", "[fast]") {
  const Scratch s;
  array(s, "x.npy", {2, 28, 28, 1}, Floats(2 * 784, 0.5f));
  const Result run = s.run("infer --model mlp --in x.npy --out y.npy --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Result32 y = result(s, "y.npy");
  CHECK(y.shape == Ints{2, 10});
  CHECK(Floats(y.values.begin(), y.values.begin() + 10) ==
        Floats(y.values.begin() + 10, y.values.end()));
  REQUIRE(s.run("infer --model '" NUMEMU_SOURCE
                "/data/mlp-glyphs.safetensors' --in input=x.npy --out z.npy --quiet")
              .code == 0);
  CHECK(result(s, "z.npy").values == y.values);
  check_refused(s.run("infer --model mpl --in x.npy --out y.npy --quiet"), "did you mean 'mlp'");
  check_refused(s.run("infer --model resnet20 --in x.npy --out y.npy --quiet"),
                "expected one shipped checkpoint of resnet20, found 0");
  array(s, "small.npy", {2, 8, 8, 1}, Floats(128, 0.5f));
  check_refused(s.run("infer --model mlp --in small.npy --out y.npy --quiet"),
                "small.npy: expected [n, 28, 28, 1], found [2, 8, 8, 1]");
  array(s, "onnx.npy", {2, 1, 28, 28}, Floats(2 * 784, 0.5f));
  check_refused(s.run("infer --model lenet --in onnx.npy --out y.npy --quiet"),
                "onnx.npy: expected [n, 28, 28, 1], found [2, 1, 28, 28]");
  const std::uint8_t bytes[784] = {};
  write_npy(s.path + "/u8.npy", ArrayType::uint8, {1, 28, 28, 1}, bytes);
  const Result codes = s.run("infer --model lenet --in u8.npy --out y.npy --quiet");
  check_refused(codes,
                "u8.npy: uint8: expected --normalize imagenet|cifar|none, or --mean and "
                "--deviation");
}

TEST_CASE("devices and files named twice are refused before any work", "[fast]") {
  const Scratch s;
  convolution(s);
  array(s, "x.npy", {1, 2, 3, 3}, counted(18));
  check_refused(s.run("infer --model m.onnx --in x.npy --out /dev/null"), "/dev/null");
  check_refused(s.run("infer --model m.onnx --in x.npy --out y=a.npy --out b=a.npy"),
                "found a.npy twice");
  const std::string model = test::read_file(s.path + "/m.onnx");
  check_refused(s.run("infer --model m.onnx --in x.npy --out m.onnx"),
                "--out and --model: expected two files, found m.onnx twice");
  CHECK(test::read_file(s.path + "/m.onnx") == model);
  s.file("r.json", R"({"numemu_recipe": 1})");
  check_refused(s.run("infer --model m.onnx --in x.npy --recipe r.json --out r.json"),
                "--out and --recipe: expected two files, found r.json twice");
  check_refused(s.run("infer --model m.onnx --in x.npy --recipe r.json --calibrate-on c.npy --out "
                      "y=c.npy"),
                "--out and --calibrate-on: expected two files, found c.npy twice");
}

TEST_CASE("arrays that do not fit the model are refused by name", "[fast]") {
  const Scratch s;
  two_inputs(s);
  convolution(s);
  array(s, "x.npy", {1, 3, 3, 2}, counted(18));
  array(s, "scalar.npy", {}, {1});
  array(s, "none.npy", {0, 3}, {});
  array(s, "one.npy", {1, 3}, {1, 2, 3});
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    INFO(arguments);
    check_refused(s.run("infer --quiet --model " + arguments), text);
  };
  refused("m.onnx --in x.npy --out y.npy",
          "x.npy: expected an array of shape [1, 2, 3, 3] for image, found [1, 3, 3, 2]");
  refused("m.onnx --in scalar.npy --out y.npy", "scalar.npy: expected an array with samples");
  refused("two.onnx --in a=none.npy --in b=b.npy --out y.npy",
          "none.npy: expected an array with samples");
  refused("two.onnx --in a.npy --in b.npy --out y.npy",
          "--in: expected a=FILE, the model's inputs are a, b");
  refused("two.onnx --in a=a.npy --out y.npy",
          "--in: expected b=FILE, the model's inputs are a, b");
  refused("two.onnx --in a=a.npy --in b=b.npy --in c=a.npy --out y.npy",
          "--in: the model has no input 'c'");
  refused("two.onnx --in a=a.npy --in b=one.npy --out y.npy",
          "one.npy: expected as many samples as the other inputs");
  refused("two.onnx --in a=a.npy --in b=b.npy --out mean=y.npy",
          "--out: the model has no output 'mean'");
  refused("two.onnx --in a=a.npy --in a=a.npy --in b=b.npy --out y.npy", "--in: a is given twice");
  refused("two.onnx --in a=a.npy --in b=b.npy --out y.npy --out sum=z.npy",
          "--out: sum is given twice");
  refused("two.onnx --in a=a.npy --in b=b.npy --out y.npy --fold-batch-norm",
          "--fold-batch-norm: expected a model of one output");
  refused("none.onnx --in a.npy --out y.npy", "none.onnx");
  refused("m.onnx --in missing.npy --out y.npy", "missing.npy");
  refused("m.onnx --in x.npy --out y.npy --batch 0", "--batch");
  refused("m.onnx --out y.npy", "--in is required");
  refused("m.onnx --in x.npy", "--out is required");
  s.file("bad.onnx", "this is no model");
  refused("bad.onnx --in a.npy --out y.npy", "bad.onnx: byte ");
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int99"}}})");
  refused("two.onnx --in a=a.npy --in b=b.npy --out y.npy --recipe r.json", "int99");
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy"));
}
