// numemu export: files read back, an independent reader in numpy, codes in safetensors, refusals.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace export_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

const char* const kExport =
    "export --net lenet=n.safetensors --data npy:x=x.npy,y=y.npy,test=16,classes=10 --samples 16 ";

/// An untrained lenet, and 64 images of two waves with some class.
void write_inputs(const Scratch& s) {
  net::Graph graph = net::build_net("lenet", {28, 28, 1}, 10);
  net::initialize(graph, 5);
  net::write_safetensors(s.path + "/n.safetensors", net::parameters_of(graph));
  std::vector<float> x(64 * 28 * 28);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>((i * 37) % 101 + (i * 11) % 203) / 101 - 1.3f;
  std::vector<std::uint8_t> y(64);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::uint8_t>(i % 10);
  write_npy(s.path + "/x.npy", ArrayType::float32, {64, 1, 28, 28}, x.data());
  write_npy(s.path + "/last.npy", ArrayType::float32, {64, 28, 28, 1}, x.data());
  write_npy(s.path + "/y.npy", ArrayType::uint8, {64}, y.data());
}

std::string recipe(const std::string& format, const std::string& scale) {
  const std::string role =
      R"({"format": ")" + format + R"(", "scale": ")" + scale + R"(", "granularity": )";
  return R"({"numemu_recipe": 1, "calibrate": {"samples": 32}, "roles": {"weight": )" + role +
         R"("channel"}, "activation": )" + role + R"("tensor"}}})";
}

/// The unit that tests/onnx/quantized_reader.py multiplies like: sums do not depend on an order.
const char* const kExact = R"("gemms": {"fprop": {"unit": "exact"}})";

std::string numpy_python() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    const std::string test = std::string(python) + " -c 'import numpy' >/dev/null 2>&1";
    if (std::system(test.c_str()) == 0) return python;
  }
  return "";
}

/// Runs the reader on m.onnx and x.npy: every output has the bits of out.npy.
void check_numpy_computes_the_same(const Scratch& s, const std::string& python,
                                   const ArrayShape& shape) {
  const std::string reader = NUMEMU_SOURCE "/tests/onnx/quantized_reader.py m.onnx x.npy z.npy";
  REQUIRE(std::system(("cd " + s.path + " && " + python + " " + reader).c_str()) == 0);
  const Array y = read_npy(s.path + "/out.npy"), z = read_npy(s.path + "/z.npy");
  REQUIRE(y.shape == shape);
  REQUIRE(z.shape == shape);
  float largest = 0;
  std::int64_t same = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    largest = std::max(largest, std::abs(y.as<float>()[i]));
    same += y.as<float>()[i] == z.as<float>()[i];
  }
  CHECK(same == y.elements());
  CHECK(largest > 0);
}

}  // namespace

TEST_CASE("numpy computes the same from the file, by a reader of its own", "[fast]") {
  const Scratch s;
  const std::string python = numpy_python();
  if (python.empty()) {
    WARN("skipped: no python3 with numpy");
    return;
  }
  write_inputs(s);
  s.file("exact.json", std::string(R"({"numemu_recipe": 1, )") + kExact + "}");
  for (const char* format : {"int8", "int4", "float8_e4m3fn"}) {
    INFO(format);
    s.file("r.json", recipe(format, "pow2(absmax)"));
    REQUIRE(s.run(std::string(kExport) + "--recipe r.json --out m.onnx --quiet").code == 0);
    REQUIRE(s.run("infer --model m.onnx --in x.npy --out out.npy --recipe exact.json --quiet "
                  "--outputs-only")
                .code == 0);
    check_numpy_computes_the_same(s, python, {64, 10});
  }
}

TEST_CASE("float32 of an exported network is that network, which notes and gates say", "[fast]") {
  const Scratch s;
  write_inputs(s);
  s.file("r.json", recipe("int4", "absmax"));
  const std::string data = " --data npy:x=x.npy,y=y.npy,test=16,classes=10 --recipe r.json ";
  const Result exported =
      s.run("export --net lenet=n.safetensors" + data + "--out m.safetensors --quiet");
  INFO(exported.err);
  REQUIRE(exported.code == 0);
  const std::string eval = "eval --net m.safetensors" + data + "--no-predictions --quiet ";
  const Result row = s.run(eval + "--json --gate 'top1>=0'");
  INFO(row.err);
  REQUIRE(row.code == 0);
  CHECK(Json::parse(row.out)["baseline_has"] == "5 weights stored as codes");
  CHECK_THAT(row.out, Contains("5 weights stored as codes, which the reference (float32) contains "
                               "too: changes and SQNR are relative to the exported network"));
  check_refused(s.run(eval + "--gate 0.5"), "no float32 is there to take a share of");
  const Result inferred = s.run(
      "infer --model m.safetensors --in last.npy --out out.npy --recipe r.json --json "
      "--outputs-only");
  INFO(inferred.err);
  REQUIRE(inferred.code == 0);
  CHECK_THAT(inferred.err, Contains("nothing is calibrated") && !Contains("scales calibrated on"));
  CHECK(Json::parse(inferred.out)["calibration"]["samples"] == 0);
  CHECK_THAT(inferred.out, Contains("relative to the exported network"));
}

/// The file with the element `i` of a float32 tensor changed.
void change(const std::string& from, const std::string& to, const std::string& tensor,
            std::size_t i, const std::function<float(float)>& changed) {
  std::string bytes = read_file(from);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = Json::parse(bytes.substr(sizeof length, length));
  const std::size_t at = sizeof length + length +
                         header.at(tensor)["data_offsets"][0].get<std::size_t>() +
                         i * sizeof(float);
  float value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  value = changed(value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
  write_file(to, bytes);
}

TEST_CASE("scales, zero points and formats that contradict the ranges are refused", "[fast]") {
  const Scratch s;
  write_inputs(s);
  s.file("r.json", R"({"numemu_recipe": 1, "roles": {
      "weight": {"format": "int4", "granularity": "channel"}, "activation": {"format": "int8"}},
      "layers": [{"match": "fc3", "roles": {"activation": {"format": "uint8",
                                                           "zero_point": "calibrated"}}}]})");
  const std::string data = " --data npy:x=x.npy,y=y.npy,test=16,classes=10 --quiet ";
  const Result exported = s.run("export --net lenet=n.safetensors --recipe r.json" + data +
                                "--samples 16 --out m.safetensors");
  INFO(exported.err);
  REQUIRE(exported.code == 0);
  const std::string m = s.path + "/m.safetensors", bad = s.path + "/bad.safetensors";
  const auto refused = [&](const std::string& text) {
    INFO(text);
    check_refused(s.run("eval --net bad.safetensors --recipe r.json" + data), text);
    check_refused(s.run("infer --model bad.safetensors --in last.npy --out y.npy --recipe r.json "
                        "--quiet --outputs-only"),
                  text);
  };
  const auto times_ten = [](float x) { return 10 * x; };
  const auto next = [](float x) { return std::nextafter(x, 2 * x); };
  for (const auto& changed : {std::function<float(float)>(times_ten), {next}}) {
    change(m, bad, "fc1.input_scale", 0, changed);
    refused("tensor 'fc1.input_scale': element 0: expected a scale of the range [");
    change(m, bad, "fc3.input_scale", 0, changed);
    refused("tensor 'fc3.input_scale': element 0: expected a scale and its zero point of the ra");
    change(m, bad, "fc2.weight_scale", 3, changed);
    refused("tensor 'fc2.weight_scale': element 3: expected a scale of the range [");
  }
  change(m, bad, "fc3.input_zero_point", 0, [](float x) { return x == 0 ? 1 : x - 1; });
  refused("tensor 'fc3.input_scale': element 0: expected a scale and its zero point of the range");
  change(m, bad, "fc1.input_zero_point", 0, [](float) { return 1.0f; });
  refused("tensor 'fc1.input_zero_point': expected 0, as metadata 'recipe' has no zero point, f");

  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string bytes = read_file(m);
    const std::size_t at = bytes.find(from);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, from.size(), to);
    write_file(bad, bytes);
  };
  replaced(R"("fc1.input_format":"int8")", R"("fc1.input_format":"int7")");
  refused("metadata: 'fc1.input_format': expected int8 as metadata 'recipe' has it, found int7");
  replaced(R"("fc1.weight_format":"int4")", R"("fc1.weight_format":"int5")");
  refused("metadata: 'fc1.weight_format': expected int4 as metadata 'recipe' has it, found int5");
  replaced(R"("ranges":)", R"("Ranges":)");
  refused("expected none, as metadata 'ranges' has no range of it, found one of the ra");
  replaced(R"("recipe":)", R"("Recipe":)");
  refused("metadata: expected the recipe of the codes under 'recipe', found none");
}

TEST_CASE("export uses the ranges of a tuned checkpoint", "[fast]") {
  const Scratch s;
  write_inputs(s);
  s.file("r.json", recipe("int4", "absmax"));
  const std::string data = " --data npy:x=x.npy,y=y.npy,test=16,classes=10 --recipe r.json ";
  const Result tuned = s.run("tune --net lenet=n.safetensors" + data +
                             "--steps 'calibrate(percentile(90))' --out t --quiet");
  INFO(tuned.err);
  REQUIRE(tuned.code == 0);
  const auto inferred = [&](const std::string& model) {
    const Result result =
        s.run("infer --model " + model +
              " --in last.npy --out out.npy --recipe r.json --quiet --outputs-only "
              "--calibrate-on npy:x=x.npy,test=16");
    INFO(result.err);
    REQUIRE(result.code == 0);
    return read_file(s.path + "/out.npy");
  };
  const Result result =
      s.run("export --net t/lenet-npy.safetensors" + data + "--out m.safetensors --quiet");
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(inferred("m.safetensors") == inferred("t/lenet-npy.safetensors"));
  CHECK(inferred("m.safetensors") != inferred("lenet=n.safetensors"));
  const Result onnx = s.run("export --net t/lenet-npy.safetensors" + data + "--out m.onnx --json");
  INFO(onnx.err);
  REQUIRE(onnx.code == 0);
  const Json json = Json::parse(onnx.out);
  CHECK(json["same_class"] == json["samples"]);
}

TEST_CASE("a user's file keeps its names, axes and operators", "[fast]") {
  for (const char* name :
       {"concat", "conv1d", "div_const", "hardswish", "logsoftmax", "seg_conv"}) {
    INFO(name);
    const Scratch s;
    s.file("r.json", recipe("int8", "pow2(absmax)"));
    const std::string own = std::string(NUMEMU_SOURCE "/tests/onnx/cases/") + name,
                      x = own + ".x.npy";
    const Result result = s.run("export --net " + own + ".onnx --data npy:x=" + x + ",test-x=" + x +
                                " --recipe r.json --out m.onnx --json");
    INFO(result.err);
    REQUIRE(result.code == 0);
    const Json json = Json::parse(result.out);
    CHECK(json["same_bits"] == json["outputs"]);
    const auto inferred = [&](const std::string& model) {
      // The output's name stands before its file, so another name is refused.
      const Result run = s.run("infer --model " + model + " --in x=" + x +
                               " --out y=y.npy --quiet --outputs-only");
      INFO(run.err);
      REQUIRE(run.code == 0);
      return read_npy(s.path + "/y.npy");
    };
    const Array y = inferred("m.onnx"), float32 = inferred(own + ".onnx");
    const Array given = read_npy(own + ".ref.npy");  // of ONNX Runtime
    CHECK(y.shape == given.shape);
    REQUIRE(float32.shape == given.shape);
    // Sums of at most 64 products of numbers below 8, in another order.
    constexpr float kOrder = 64 * 8 * 0x1p-24f;
    for (std::int64_t i = 0; i < given.elements(); ++i)
      CHECK(std::abs(float32.as<float>()[i] - given.as<float>()[i]) <= kOrder);
    // What `read back` ran is what infer runs.
    CHECK(read_file(s.path + "/m.onnx").find("QuantizeLinear") != std::string::npos);
  }
}

TEST_CASE("all outputs are compared, and named, for data as for arrays", "[fast]") {
  const Scratch s;
  s.file("m.onnx", net::test::ModelWriter()
                       .input("x", {-1, 2})
                       .floats("one.weight", {2, 3}, {1, 2, -1, 3, -2, 1})
                       .floats("two.weight", {3, 2}, {1, -1, 2, -1, 1, 3})
                       .node("MatMul", {"x", "one.weight"}, {"hidden"})
                       .node("MatMul", {"hidden", "two.weight"}, {"logits"})
                       .output("logits")
                       .output("hidden")
                       .file());
  std::vector<float> x(16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 16) - 7;
  write_npy(s.path + "/x.npy", ArrayType::float32, {8, 2}, x.data());
  s.file("r.json", recipe("int8", "pow2(absmax)"));
  for (const char* samples : {"--data npy:x=x.npy,test-x=x.npy", "--in x.npy"}) {
    INFO(samples);
    const std::string run =
        std::string("export --net m.onnx --recipe r.json --out e.onnx ") + samples;
    const Result text = s.run(run);
    INFO(text.err);
    REQUIRE(text.code == 0);
    CHECK_THAT(text.out, Contains("read back, logits and hidden: 40 of 40 outputs have the same "
                                  "bits, 8 of 8 samples the same class in logits; "));
    CHECK(Json::parse(s.run(run + " --json").out)["compared"] == Json::array({"logits", "hidden"}));
  }
}

TEST_CASE("a class token that Tile repeats for every sample", "[fast]") {
  const Scratch s;
  const std::string own = NUMEMU_SOURCE "/tests/onnx/cases/cls_repeat";
  const Result run = s.run("infer --model " + own + ".onnx --in " + own +
                           ".x.npy --out y.npy --quiet --outputs-only");
  INFO(run.err);
  REQUIRE(run.code == 0);
  const Array y = read_npy(s.path + "/y.npy"), given = read_npy(own + ".ref.npy");
  REQUIRE(y.shape == given.shape);
  constexpr float kOrder = 64 * 8 * 0x1p-24f;
  for (std::int64_t i = 0; i < given.elements(); ++i)
    CHECK(std::abs(y.as<float>()[i] - given.as<float>()[i]) <= kOrder);
}

/// An untrained transformer of texts, and a text of ten characters.
void write_text_inputs(const Scratch& s) {
  std::string text;
  for (std::size_t i = 0; i < 20000; ++i) text += static_cast<char>('a' + i * i * 31 / 7 % 10);
  s.file("t.txt", text);
  net::Graph graph = net::build_net("char-transformer", {64}, 10);
  net::initialize(graph, 5);
  net::write_safetensors(s.path + "/n.safetensors", net::parameters_of(graph));
}

TEST_CASE("a transformer of W4A8 reads back the same, attention's own products too", "[fast]") {
  const Scratch s;
  write_text_inputs(s);
  const std::string roles = R"x({"weight": {"format": "int4", "granularity": "channel",
      "scale": "pow2(absmax)"}, "activation": {"format": "int8", "scale": "pow2(absmax)"}})x";
  const std::string head = R"({"numemu_recipe": 1, "calibrate": {"samples": 8}, "roles": )" + roles;
  const std::string none = R"(", "roles": {"activation": null}})";
  s.file("all.json", head + "}");
  s.file("r.json", head + R"(, "layers": [{"match": "*.scores)" + none +
                       R"(, {"match": "*.gathered)" + none + "]}");
  const std::string run =
      "export --net char-transformer=n.safetensors --data text:t.txt --samples 4 --json ";
  check_refused(s.run(run + "--recipe all.json --out m.safetensors"),
                "a quantized product of two activations, whose ranges a checkpoint does not store, "
                "cannot be exported");
  s.file("rows.json", R"({"numemu_recipe": 1, "roles": {"key": {"format": "int8",
      "granularity": "row"}}})");
  check_refused(s.run(run + "--recipe rows.json --out m.onnx"),
                "role key as right operand without one calibrated scale");
  // Zero points, keys and values of their own, floats of 8 bits.
  s.file("shifted.json", R"x({"numemu_recipe": 1, "calibrate": {"samples": 8}, "roles": {
      "activation": null, "key": {"format": "float8_e4m3fn", "scale": "pow2(absmax)"},
      "value": {"format": "int6", "scale": "pow2(absmax)"}}})x");
  for (const char* const given : {"all.json --out m.onnx", "shifted.json --out m.onnx",
                                  "r.json --out m.onnx", "r.json --out m.safetensors"}) {
    INFO(given);
    const Result result = s.run(run + "--recipe " + given);
    INFO(result.err);
    REQUIRE(result.code == 0);
    const Json json = Json::parse(result.out);
    CHECK(json["outputs"] == 4 * 64 * 10);
    CHECK(json["same_bits"] == json["outputs"]);
  }
}

TEST_CASE("numpy computes attention of quantized operands from the file", "[fast]") {
  const Scratch s;
  const std::string python = numpy_python();
  if (python.empty()) {
    WARN("skipped: no python3 with numpy");
    return;
  }
  write_text_inputs(s);
  const std::string layers = R"x("layers": [{"match": "*.scores", "roles": {"activation": ROLE}},
      {"match": "*.gathered", "roles": {"activation": ROLE}}])x";
  std::vector<float> ids(3 * 64);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<float>(i * i % 10);
  write_npy(s.path + "/x.npy", ArrayType::float32, {3, 64}, ids.data());
  // Under scales that are powers of two a code times its scale is exact. Under others the file
  // rounds it, the unit rounds the finished product: a last bit differs, and where that moves a
  // number across a tie, a code does and with it every later position of the text.
  for (const char* role : {R"x({"format": "int8", "scale": "pow2(absmax)"})x",
                           R"x({"format": "uint8", "scale": "pow2(absmax)",
                                "zero_point": "calibrated"})x"}) {
    INFO(role);
    std::string text = R"({"numemu_recipe": 1, "calibrate": {"samples": 8}, )" +
                       std::string(kExact) + ", " + layers + "}";
    for (std::size_t at; (at = text.find("ROLE")) != std::string::npos;) text.replace(at, 4, role);
    s.file("r.json", text);
    REQUIRE(s.run("export --net char-transformer=n.safetensors --data text:t.txt --samples 4 "
                  "--recipe r.json --out m.onnx --quiet")
                .code == 0);
    const Result inferred = s.run(
        "infer --model char-transformer=n.safetensors --in x.npy --out out.npy --recipe r.json "
        "--calibrate-on text:t.txt --quiet --outputs-only");
    INFO(inferred.err);
    REQUIRE(inferred.code == 0);
    check_numpy_computes_the_same(s, python, {3, 64, 10});
  }
}

TEST_CASE(
    "codes and scales in safetensors are read by decode, and nothing is written over its input",
    "[fast]") {
  const Scratch s;
  write_inputs(s);
  s.file("r.json", recipe("int4", "absmax"));
  const Result codes = s.run(std::string(kExport) + "--recipe r.json --out m.safetensors");
  INFO(codes.err);
  REQUIRE(codes.code == 0);
  // A byte for each code: a decoder of int8 finds whole numbers up to 7.
  const Result decoded = s.run("decode --tensor fc3.weight --in m.safetensors --out w.npy");
  INFO(decoded.err);
  CHECK(decoded.code == 0);
  const Array w = read_npy(s.path + "/w.npy");
  CHECK(w.shape == ArrayShape{10, 84});
  float most = 0;
  for (std::int64_t i = 0; i < w.elements(); ++i) most = std::max(most, std::abs(w.as<float>()[i]));
  CHECK(most == 7);

  s.file("a.safetensors", "kept");
  check_refused(s.run("export --net a.safetensors --data glyphs --out ./a.safetensors"),
                "--out and --net: expected two files");
  CHECK(read_file(s.path + "/a.safetensors") == "kept");
  net::Graph resnet = net::build_net("resnet20", {28, 28, 1}, 10);
  net::initialize(resnet, 5);
  net::write_safetensors(s.path + "/resnet.safetensors", net::parameters_of(resnet));
  s.file("n.json", R"({"numemu_recipe": 1, "norm": {"statistic": "shift"}})");
  CHECK(s.run("export --net resnet20=resnet.safetensors --data npy:x=x.npy,y=y.npy,test=16,"
              "classes=10 --samples 16 --recipe n.json --quiet --out n.safetensors")
            .code == 0);
}

}  // namespace export_test
