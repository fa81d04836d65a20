// numemu infer under a recipe: noise per layer beside its prediction, what calibrates, all as JSON.
#include <cmath>
#include <cstdlib>

#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

using namespace numemu::test;
using Catch::Contains;
using numemu::Json;
using numemu::net::test::ModelWriter;

namespace {

constexpr std::int64_t kSamples = 64, kWidth = 48;

float number(std::int64_t i) {
  return static_cast<float>(std::sin(0.7 * static_cast<double>(i * i % 1009)));
}

std::vector<float> numbers(std::int64_t n, float scale) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(scale * number(i + 3 * n));
  return out;
}

void array(const Scratch& s, const std::string& name, const std::vector<float>& values) {
  numemu::write_npy(s.path + "/" + name, numemu::ArrayType::float32,
                    {static_cast<std::int64_t>(values.size()) / kWidth, kWidth}, values.data());
}

/// Two layers with a ReLU between them.
void model(const Scratch& s) {
  s.file("m.onnx", ModelWriter()
                       .input("x", {-1, kWidth})
                       .floats("one.weight", {kWidth, kWidth}, numbers(kWidth * kWidth, 0.2f))
                       .floats("two.weight", {kWidth, 8}, numbers(kWidth * 8, 0.3f))
                       .node("MatMul", {"x", "one.weight"}, {"h"})
                       .node("Relu", {"h"}, {"r"})
                       .node("MatMul", {"r", "two.weight"}, {"y"})
                       .output("y")
                       .file());
  array(s, "x.npy", numbers(kSamples * kWidth, 1));
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"},
    "activation": {"format": "int8"}}, "calibrate": {"samples": 8}})");
}

const std::string kRun = "infer --model m.onnx --in x.npy --out y.npy --recipe r.json ";

TEST_CASE("infer gives the noise of every layer beside its prediction", "[fast]") {
  const Scratch s;
  model(s);
  const Result run = s.run(kRun + "--json --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Json report = Json::parse(run.out);
  REQUIRE(report["layers"].size() == 2);
  for (const Json& layer : report["layers"]) {
    CHECK(layer["sqnr_db"].get<double>() > 20);
    CHECK(std::abs(layer["sqnr_db"].get<double>() - layer["predicted_db"].get<double>()) < 1);
    // "holds" needs the whole interval within 1 dB.
    const double predicted = layer["predicted_db"].get<double>();
    const bool inside = layer["sqnr_ci95"][0].get<double>() >= predicted - 1 &&
                        layer["sqnr_ci95"][1].get<double>() <= predicted + 1;
    CHECK(layer["verdict"].get<std::string>() == (inside ? "holds" : "undecided"));
  }
  CHECK(report["noise_samples"] == kSamples);
  // The output's figure again, from the arrays.
  const numemu::Array quantized = numemu::read_npy(s.path + "/y.npy");
  REQUIRE(s.run("infer --model m.onnx --in x.npy --out f.npy --quiet").code == 0);
  const numemu::Array exact = numemu::read_npy(s.path + "/f.npy");
  double signal = 0, noise = 0;
  for (std::int64_t i = 0; i < exact.elements(); ++i) {
    const double x = exact.as<float>()[i], e = quantized.as<float>()[i] - x;
    signal += x * x;
    noise += e * e;
  }
  CHECK(report["metrics"]["sqnr_db"].get<double>() ==
        Approx(10 * std::log10(signal / noise)).epsilon(1e-5));

  const std::string bytes = read_file(s.path + "/y.npy");
  const Result shown = s.run(kRun + "--quiet");
  CHECK_THAT(shown.out, Contains("SQNR dB") && Contains("predicted") && Contains("output: SQNR") &&
                            Contains("SQNR and predictions on the first "));
  const Result measured = s.run(kRun + "--json --quiet --no-predictions");
  CHECK(Json::parse(measured.out)["layers"][0]["predicted_db"].is_null());
  CHECK(Json::parse(measured.out)["layers"][0]["sqnr_db"] == report["layers"][0]["sqnr_db"]);
  const Result alone = s.run(kRun + "--json --quiet --outputs-only");
  CHECK_FALSE(Json::parse(alone.out).contains("layers"));
  CHECK(read_file(s.path + "/y.npy") == bytes);
}

TEST_CASE("of one sample infer decides no prediction of SQNR", "[fast]") {
  const Scratch s;
  model(s);
  array(s, "x.npy", numbers(kWidth, 1));
  const Result run = s.run(kRun + "--json --quiet");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Json report = Json::parse(run.out);
  CHECK(report["noise_samples"] == 1);
  CHECK(report["metrics"]["sqnr_error_db"].is_null());
  CHECK(report["predicted"]["verdict"] == "undecided");
  REQUIRE(report["layers"].size() == 2);
  for (const Json& layer : report["layers"]) CHECK(layer["verdict"] == "undecided");
  const Result shown = s.run(kRun + "--quiet");
  CHECK_THAT(shown.out, Contains("output: SQNR") && Contains(": undecided") && !Contains("holds") &&
                            !Contains("fails"));
}

TEST_CASE("infer says which samples calibrated its scales, and takes others", "[fast]") {
  const Scratch s;
  model(s);
  const Json own = Json::parse(s.run(kRun + "--json --quiet").out);
  CHECK(own["calibration"]["samples"] == 8);
  CHECK(own["calibration"]["of"] == kSamples);
  CHECK(own["calibration"]["from"] == "x.npy");
  const std::string bytes = read_file(s.path + "/y.npy");

  // The same samples from another file give the same scales; samples twice as large do not.
  array(s, "first.npy", numbers(kSamples * kWidth, 1));
  const Result same = s.run(kRun + "--calibrate-on first.npy");
  CHECK_THAT(same.err, Contains("scales calibrated on the first 8 of 64 samples of first.npy"));
  CHECK(read_file(s.path + "/y.npy") == bytes);
  array(s, "large.npy", numbers(8 * kWidth, 2));
  const Json large = Json::parse(s.run(kRun + "--json --quiet --calibrate-on x=large.npy").out);
  CHECK(large["calibration"]["of"] == 8);
  CHECK(large["calibration"]["digest"].get<std::string>().size() == 16);
  CHECK_FALSE(own["calibration"].contains("digest"));  // that of the inputs
  CHECK(read_file(s.path + "/y.npy") != bytes);

  std::string text;
  for (int i = 0; i < 300; ++i) text += "one two three. ";
  s.file("small.txt", text);
  check_refused(s.run(kRun + "--calibrate-on text:small.txt --quiet"),
                "--calibrate-on: expected samples of shape [48], found [64] in text:small.txt");
  check_refused(s.run(kRun + "--calibrate-on z=x.npy --quiet"), "--calibrate-on: expected x=FILE");
  check_refused(s.run("infer --model m.onnx --in x.npy --out y.npy --calibrate-on x.npy"),
                "--calibrate-on: expected a --recipe");
}

TEST_CASE("the JSON of infer has inputs, outputs, memory and time", "[fast]") {
  const Scratch s;
  model(s);
  const Json report =
      Json::parse(s.run("infer --model m.onnx --in x.npy --out y.npy --json --batch 4").out);
  CHECK(report["model"]["file"] == "m.onnx");
  CHECK(report["model"]["weights"].get<std::string>().size() == 16);
  CHECK(report["inputs"][0]["digest"].get<std::string>().size() == 16);
  CHECK(report["outputs"][0]["output"] == "y");
  CHECK(report["outputs"][0]["digest"] != report["inputs"][0]["digest"]);
  CHECK(report["recipe"].is_null());
  CHECK_FALSE(report.contains("calibration"));
  CHECK(report["memory"]["weight_bytes"] == 4 * (kWidth * kWidth + kWidth * 8));
  CHECK(report["memory"]["largest_activation_bytes"] == 4 * 4 * kWidth);
  CHECK(report["memory"]["peak_bytes"].get<std::int64_t>() > 1 << 20);
  for (const char* part : {"load", "run", "write", "total"})
    CHECK(report["seconds"][part].get<double>() >= 0);
}

TEST_CASE("a profile of infer covers loading, folding and writing", "[fast]") {
  const Scratch s;
  model(s);
  const Result run = s.run(kRun + "--profile --quiet");
  REQUIRE(run.code == 0);
  for (const char* part : {"arrays", "ONNX file", "ONNX import", "calibration", "predictions",
                           "noise on the first samples", "outputs", "(outside all sections)"})
    CHECK_THAT(run.err, Contains(part));
}

TEST_CASE("samples with NaN calibrate nothing and are left out of SQNR", "[fast]") {
  const Scratch s;
  model(s);
  std::vector<float> x = numbers(4 * kWidth, 1);
  array(s, "x.npy", {x.begin() + 2 * kWidth, x.end()});
  const Json clean = Json::parse(s.run(kRun + "--json --quiet").out);
  x[5] = std::nanf("");
  x[kWidth] = HUGE_VALF;
  array(s, "x.npy", x);
  const Result run = s.run(kRun + "--json");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err, Contains("note: scales calibrated on 2 of 4 samples, 2 with NaN or infinite "
                               "numbers left out; the first is sample 0"));
  const Json report = Json::parse(run.out);
  CHECK(report["calibration"]["samples"] == 2);
  CHECK(report["calibration"]["not_finite_samples"] == 2);
  CHECK(report["noise_samples"] == 2);
  CHECK(report["metrics"]["sqnr_db"] == clean["metrics"]["sqnr_db"]);
  CHECK(report["layers"][0]["predicted_db"] == clean["layers"][0]["predicted_db"]);
  CHECK_THAT(report["notes"].dump(),
             Contains("SQNR and predictions leave out 2 of the first 4 samples"));

  array(s, "x.npy", std::vector<float>(2 * kWidth, std::nanf("")));
  check_refused(s.run(kRun + "--quiet"),
                "x.npy: expected finite numbers in one of the first 2 samples at least");
}

TEST_CASE("a padding mask leaves no sample out, also beside one of full length", "[fast]") {
  const Scratch s;
  model(s);
  s.file("m.onnx", ModelWriter()
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
  array(s, "x.npy", numbers(4 * kWidth, 1));
  std::vector<float> mask(4 * kWidth, 0);  // the last sample has its full length
  for (const std::size_t i : {0, 1, 2}) mask[i * kWidth + 3] = -HUGE_VALF;
  array(s, "mask.npy", mask);
  const Result run = s.run(
      "infer --model m.onnx --in x=x.npy --in mask=mask.npy --out y.npy "
      "--recipe r.json --json");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Json report = Json::parse(run.out);
  CHECK(report["calibration"]["samples"] == 4);
  CHECK(!report["calibration"].contains("not_finite_samples"));
}

TEST_CASE("infer does not call layers equal whose noise NaN hides", "[fast]") {
  const Scratch s;
  model(s);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})");
  array(s, "x.npy", std::vector<float>(2 * kWidth, std::nanf("")));
  const auto out = s.run(kRun).out;
  CHECK(out.find("no layer differs") == out.npos);
  CHECK(out.find("no SQNR of layers: the samples that measure noise give NaN") != out.npos);
}

}  // namespace
