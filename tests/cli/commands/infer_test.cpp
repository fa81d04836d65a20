// numemu infer: what it prints, says and gives as JSON, and the memory budget.
#include <cmath>
#include <filesystem>
#include <limits>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace infer_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;
using numemu::net::test::ModelWriter;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

namespace {

void array(const Scratch& s, const std::string& name, const ArrayShape& shape,
           const Floats& values) {
  write_npy(s.path + "/" + name, ArrayType::float32, shape, values.data());
}

/// x, two columns, by two layers.
void model(const Scratch& s, const Floats& first = {1, 1, 1, 1}) {
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, 2})
                       .floats("one.weight", {2, 2}, first)
                       .floats("two.weight", {2, 2}, {1, -1, 1, -1})
                       .node("MatMul", {"x", "one.weight"}, {"h"})
                       .node("MatMul", {"h", "two.weight"}, {"y"})
                       .output("y")
                       .file());
}

const std::string kRun = "infer --model m.onnx --in x.npy --out y.npy ";
const std::string kUnder = kRun + "--recipe r.json ";

}  // namespace

TEST_CASE("infer prints its outputs and the noise of layers, and is quiet where asked", "[fast]") {
  const Scratch s;
  model(s);
  array(s, "x.npy", {3, 2}, {127, 1.375f, -0.625f, 2.5f, 1, 3});
  const Result plain = s.run(kRun + "--quiet");
  CHECK(plain.out == "y [3, 2] -> y.npy, float32 on neutral.f32.sequential\n");
  CHECK(plain.err.empty());
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}})");
  const Result under = s.run(kUnder);
  INFO(under.err);
  REQUIRE(under.code == 0);
  CHECK_THAT(under.out, Catch::StartsWith("y [3, 2] -> y.npy, numerics of r.json\n\nlayer ") &&
                            Contains("SQNR dB") && Contains("predicted") &&
                            Contains("output: SQNR") &&
                            Contains("SQNR and predictions on the first "));
  CHECK_THAT(under.err, Contains("scales calibrated on the first 3 of 3 samples"));
  const std::string bytes = read_file(s.path + "/y.npy");
  CHECK_THAT(s.run(kUnder + "--no-predictions").out, Contains("SQNR dB") && !Contains("predicted"));
  CHECK(s.run(kUnder + "--quiet --outputs-only").out == "y [3, 2] -> y.npy, numerics of r.json\n");
  CHECK(read_file(s.path + "/y.npy") == bytes);
  // Of one sample no prediction is decided.
  array(s, "x.npy", {1, 2}, {127, 1.375f});
  CHECK_THAT(s.run(kUnder + "--quiet").out, !Contains("holds") && !Contains("fails"));
  array(s, "x.npy", {2, 2}, Floats(4, std::nanf("")));
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  CHECK_THAT(s.run(kUnder).out,
             !Contains("no layer differs") &&
                 Contains("no SQNR of layers: the samples that measure noise give NaN"));
}

TEST_CASE("infer says what it rounds, and notes, unless quiet", "[fast]") {
  const Scratch s;
  model(s);
  const std::vector<double> x = {0.1, 1, -2, 4};
  write_npy(s.path + "/x.npy", ArrayType::float64, {2, 2}, x.data());
  const std::string rounded =
      "numemu: note: x.npy: 1 of 4 numbers rounded to float32, the type of network values\n";
  CHECK_THAT(s.run(kRun).err, Contains(rounded));
  CHECK(s.run(kRun + "--quiet").err.empty());
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"},
    "activation": {"format": "uint8"}}})");
  const Result noted = s.run(kUnder + "--json");
  CHECK_THAT(noted.err, Contains("note: blocks of ") && Contains("mxfp4") &&
                            Contains("note: uint8 has no negative numbers, which become its lowest "
                                     "value: activation of "));
  CHECK(Json::parse(noted.out)["notes"].size() >= 2);
  CHECK(s.run(kUnder + "--json --quiet").err.empty());
  CHECK(Json::parse(s.run(kRun + "--json").out)["notes"].empty());
}

TEST_CASE("NaN that a format without any makes numbers of is said", "[fast]") {
  const Scratch s;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  model(s, {1, 0, 0, 1});
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}})");
  array(s, "x.npy", {3, 2}, {1, 2, kNan, kNan, kNan, 3});
  const Result quantized = s.run(kUnder + "--json");
  INFO(quantized.err);
  REQUIRE(quantized.code == 0);
  CHECK_THAT(
      quantized.err,
      Contains("the inputs hold 3 NaN, and 2 of the 2 samples with NaN have outputs without") &&
          Contains("note: scales calibrated on 1 of 3 samples, 2 with NaN or infinite numbers left "
                   "out; the first is sample 1"));
  const Json report = Json::parse(quantized.out);
  CHECK(report["outputs"][0]["nan_samples_without_nan_output"] == 2);
  CHECK(report["calibration"]["not_finite_samples"] == 2);
  const Result float32 = s.run(kRun + "--json");
  CHECK_THAT(float32.err, !Contains("the inputs hold") &&
                              Contains("note: 2 of 3 samples of y have NaN or infinite numbers"));
  CHECK(float32.out.find("nan_samples") == std::string::npos);
}

TEST_CASE("where outputs first stop being finite is said, also with --quiet", "[fast]") {
  const Scratch s;
  model(s);
  array(s, "x.npy", {3, 2}, {1, 2, 3e38f, 3e38f, 1, 1});
  const Result wide = s.run(kRun + "--json --quiet");
  REQUIRE(wide.code == 0);
  CHECK(wide.err ==
        "note: 1 of 3 samples of y have NaN or infinite numbers (NaN 0, infinite 2 of 6)\n"
        "note: they first occur in layer one: 2 of 6 results: accumulator overflow (float32, at "
        "most 3.4e+38)\n");
  CHECK(Json::parse(wide.out)["outputs"][0]["not_finite"]["samples_not_finite"] == 1);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "float16",
    "overflow": "ieee"}}})");
  CHECK_THAT(s.run(kUnder + "--json --quiet").err, Contains("layer one"));
  // All outputs are finite: no message.
  array(s, "x.npy", {1, 2}, {1, 2});
  CHECK(s.run(kRun + "--quiet").err.empty());
}

TEST_CASE("the JSON of infer has inputs, calibration, outputs, memory and time", "[fast]") {
  const Scratch s;
  model(s);
  array(s, "x.npy", {8, 2}, Floats(16, 0.5f));
  array(s, "c.npy", {4, 2}, Floats(8, 0.25f));
  const Json report = Json::parse(s.run(kRun + "--json --batch 4").out);
  CHECK(report["model"]["file"] == "m.onnx");
  CHECK(report["model"]["weights"].get<std::string>().size() == 16);
  CHECK(report["inputs"][0]["digest"].get<std::string>().size() == 16);
  CHECK(report["outputs"][0]["output"] == "y");
  CHECK(report["outputs"][0]["file"] == "y.npy");
  CHECK(report["outputs"][0]["shape"] == Json{8, 2});
  CHECK(report["outputs"][0]["digest"] != report["inputs"][0]["digest"]);
  CHECK(report["recipe"].is_null());
  CHECK_FALSE(report.contains("calibration"));
  CHECK_FALSE(report.contains("layers"));
  CHECK(report["memory"]["weight_bytes"] == 4 * 8);
  CHECK(report["memory"]["largest_activation_bytes"] == 4 * 4 * 2);
  CHECK(report["memory"]["peak_bytes"].get<std::int64_t>() > 1 << 20);
  for (const char* part : {"load", "run", "write", "total"})
    CHECK(report["seconds"][part].get<double>() >= 0);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}})");
  const Json own = Json::parse(s.run(kUnder + "--json --quiet").out);
  CHECK(own["calibration"] == Json{{"samples", 8}, {"of", 8}, {"from", "x.npy"}});
  CHECK(own["noise_samples"] == 8);
  CHECK(own["layers"].size() == 2);
  CHECK(own["recipe"]["roles"]["activation"]["format"] == "int8");
  const Json apart = Json::parse(s.run(kUnder + "--json --quiet --calibrate-on x=c.npy").out);
  CHECK(apart["calibration"]["from"] == "x=c.npy");
  CHECK(apart["calibration"]["digest"].get<std::string>().size() == 16);
}

TEST_CASE("a profile of infer covers loading, folding and writing", "[fast]") {
  const Scratch s;
  model(s);
  array(s, "x.npy", {8, 2}, Floats(16, 0.5f));
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"activation": {"format": "int8"}}})");
  const Result run = s.run(kUnder + "--profile --quiet");
  REQUIRE(run.code == 0);
  for (const char* part : {"arrays", "ONNX file", "ONNX import", "calibration", "predictions",
                           "noise on the first samples", "outputs", "(outside all sections)"})
    CHECK_THAT(run.err, Contains(part));
}

TEST_CASE("a small file cannot ask for more memory than the budget", "[fast]") {
  const Scratch s;
  const std::vector<float> ones(8000, 1);
  write_npy(s.path + "/column.npy", ArrayType::float32, {1, 8000, 1}, ones.data());
  write_npy(s.path + "/pixel.npy", ArrayType::float32, {1, 1, 1, 1}, ones.data());
  s.file("expand.onnx", ModelWriter()
                            .input("x", {-1, 8000, 1})
                            .integers("shape", {3}, {1, 1, 80'000})
                            .node("Expand", {"x", "shape"}, {"y"}, {}, "grow")
                            .output("y")
                            .file());
  s.file("pad.onnx", ModelWriter()
                         .input("x", {-1, 1, 1, 1})
                         .integers("pads", {8}, {0, 0, 15'000, 15'000, 0, 0, 15'000, 15'000})
                         .node("Pad", {"x", "pads"}, {"y"}, {}, "frame")
                         .output("y")
                         .file());
  s.file("gather.onnx", ModelWriter()
                            .input("x", {-1, 1, 1, 1})
                            .integers("many", {36'000}, Ints(36'000, 0))
                            .node("Gather", {"x", "many"}, {"a"},
                                  {net::test::attribute("axis", std::int64_t{1})}, "first")
                            .node("Gather", {"a", "many"}, {"y"},
                                  {net::test::attribute("axis", std::int64_t{2})}, "second")
                            .output("y")
                            .file());
  const std::string tail = " --out y.npy --memory 1G";
  check_refused(s.run("infer --model expand.onnx --in column.npy" + tail),
                "output y of shape [1, 8000, 80000], all samples: needs 2.4 GiB");
  check_refused(s.run("infer --model pad.onnx --in pixel.npy" + tail), "[1, 1, 30001, 30001]");
  check_refused(s.run("infer --model gather.onnx --in pixel.npy" + tail), "[1, 36000, 36000, 1]");
  // Where the large value is not an output, its node is named.
  s.file("mean.onnx",
         ModelWriter()
             .input("x", {-1, 8000, 1})
             .integers("shape", {3}, {1, 1, 80'000})
             .node("Expand", {"x", "shape"}, {"large"}, {}, "grow")
             .node("ReduceMean", {"large"}, {"y"}, {net::test::attribute("axes", Ints{2})}, "mean")
             .output("y")
             .file());
  check_refused(
      s.run("infer --model mean.onnx --in column.npy --quiet" + tail),
      "'grow' (add): its result [1, 8000, 80000] of 2.4 GiB and the other tensors in memory do "
      "not fit the memory budget of 1.0 GiB (--memory)");
  for (const char* wrong : {"0", "-1", "1X", "1GB", "1.5G", "1025T", "99999999999999999999", ""})
    check_refused(s.run("infer --model mean.onnx --in column.npy --out y.npy --memory '" +
                        std::string(wrong) + "'"),
                  "--memory");
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy"));
}

}  // namespace infer_test
