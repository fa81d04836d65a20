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
