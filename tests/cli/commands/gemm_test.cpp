// numemu gemm from outside: what it computes and writes, and what it refuses in one line.
#include <filesystem>

#include "formats/storage/json.hpp"
#include "tests/cli/gemm_fixture.hpp"

namespace gemm_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

TEST_CASE("gemm: a product, its summary and its JSON", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  const Result result = s.gemm("nvidia.h100.wgmma.e4m3.f32");
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(result.out ==
        "d.npy: float32 [2, 3] = nvidia.h100.wgmma.e4m3.f32 of float8_e4m3fn x float8_e4m3fn, K = "
        "4, C +0; register rtz, overflow infinity, scales none; evidence: hardware\n");
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>(6, 4));
  CHECK_FALSE(std::filesystem::exists(s.path + "/d.npy.json"));
  const Json json = Json::parse(s.gemm("h100.wgmma.e4m3.f32", "--out d.npy --json").out);
  CHECK(json["unit"] == "nvidia.h100.wgmma.e4m3.f32");
  CHECK(json["grade"] == "hardware");
  CHECK(json["rounding"] == "rtz");
  CHECK(json["k"] == 4);
  CHECK(json["c"] == false);
  CHECK(s.gemm("h100.wgmma.e4m3.f32", "--out d.npy --quiet").out.empty());
  CHECK(s.gemm("h100.wgmma.e4m3.f32", "--out e.npy --reference --quiet").code == 0);
  CHECK(s.text("e.npy") == s.text("d.npy"));
}

TEST_CASE("gemm: results that are codes have a sidecar", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  REQUIRE(s.gemm("nvidia.h100.wgmma.e4m3.f16").code == 0);
  CHECK(s.result<std::uint16_t>(ArrayType::uint16) == std::vector<std::uint16_t>(6, 0x4400));
  CHECK(Json::parse(s.text("d.npy.json"))["format"] == "float16");
  CHECK(s.call("decode --format float16 --in d.npy --out y.npy --quiet").code == 0);
  // The old sidecar must not describe the new file of numbers.
  REQUIRE(s.gemm("nvidia.h100.wgmma.e4m3.f32").code == 0);
  CHECK_FALSE(std::filesystem::exists(s.path + "/d.npy.json"));
  REQUIRE(s.gemm("neutral.mac.e5m10.sr8", "--seed 7" + kAnyE4m3).code == 0);
  const Json about = Json::parse(s.text("d.npy.json"));
  CHECK(about["rounding"] == "sr(8)");
  CHECK(about["seed"] == 7);
}

TEST_CASE("gemm: formats are required where the unit takes any, refused where they contradict",
          "[fast]") {
  const GemmFolder s;
  s.e4m3();
  check_refused(s.gemm("exact"), "--format-a: expected a format: unit neutral.exact takes any");
  check_refused(s.gemm("exact", "--format-a e4m3fn --out d.npy"), "--format-b: expected a format");
  CHECK(s.gemm("exact", kAnyE4m3).code == 0);
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32";
  CHECK(s.gemm(unit, "--format-d float32" + kAnyE4m3).code == 0);
  check_refused(s.gemm(unit, "--format-a e5m2 --out d.npy"),
                "--format-a: float8_e5m2 contradicts unit " + unit + ", which takes float8_e4m3fn");
  check_refused(s.gemm(unit, "--format-b int8 --out d.npy"), "--format-b: int8 contradicts");
  check_refused(s.gemm(unit, "--format-d float16 --out d.npy"),
                "--format-d: float16 contradicts unit " + unit + ", which gives float32");
  check_refused(s.gemm("exact", "--format-a e4m3fm --format-b e4m3fn --out d.npy"), "e4m3fn");
  check_refused(s.gemm("exact", "--format-a int4 --format-b e4m3fn --out d.npy"),
                "a.npy: element 0: expected a code of int4 within 0..0xf, found 0x38");
  // A sidecar gives the format too, and must not contradict.
  s.file("a.npy.json", R"({"numemu": "1", "format": "float8_e4m3fn", "logical_shape": [2, 4]})");
  CHECK(s.gemm("exact", "--format-b e4m3fn --out d.npy").code == 0);
  s.file("a.npy.json", R"({"numemu": "1", "format": "float8_e5m2", "logical_shape": [2, 4]})");
  check_refused(s.gemm(unit), "a.npy.json: format: 'float8_e5m2' contradicts unit " + unit +
                                  ", which takes 'float8_e4m3fn'");
  check_refused(s.gemm("exact", kAnyE4m3),
                "a.npy.json: format: 'float8_e5m2' contradicts --format-a 'float8_e4m3fn'");
}

TEST_CASE("gemm: unknown units offer the nearest, short ones that fit several list them",
          "[fast]") {
  const GemmFolder s;
  s.e4m3();
  check_refused(s.gemm("nvidia.h100.wgmma.e4m3.f33"), "did you mean 'nvidia.h100.wgmma.e4m3.f32'");
  check_refused(s.gemm("wgmma.e4m3.f32"), "short for several: nvidia.h100.wgmma.e4m3.f32, nvidia");
  check_refused(s.gemm("h100.fp8"), "unknown unit 'h100.fp8'; near: nvidia.h100.");
  check_refused(s.gemm("tensorcore"), "unknown unit 'tensorcore'; all: numemu units");
  check_refused(s.gemm("neutral.mac.float16.rnd"), "unknown rounding 'rnd'");
  check_refused(s.gemm("nvidia.a100.mma.f16.f32.pairwise"), "has no modifier 'pairwise'");
  check_refused(s.call("gemm --a a.npy --b b.npy --out d.npy"), "--unit");
}

TEST_CASE("gemm: alpha is a product and a sum, each rounded", "[fast]") {
  const GemmFolder s;
  // acc = 1 + 2^-23, alpha = 1 + 2^-23: RNE(alpha acc) = 1 + 2^-22; a fused step would keep 2^-46.
  s.floats("a.npy", {1, 1}, {1 + 0x1p-23f});
  s.floats("b.npy", {1, 1}, {1});
  s.floats("c.npy", {1, 1}, {-1});
  const std::string formats = " --format-a float32 --format-b float32 --out d.npy ";
  REQUIRE(s.gemm("exact", formats + "--c c.npy --alpha 1.00000011920928955").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{0x1p-22f});
  // C does not enter the unit: with a register of few bits it would be lost there.
  s.floats("c.npy", {1, 1}, {0x1p24f});
  s.floats("a.npy", {1, 1}, {3});
  REQUIRE(s.gemm("exact", formats + "--c c.npy --alpha 0.5").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{0x1p24f + 2});
  REQUIRE(s.gemm("exact", formats + "--alpha=-0.5").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{-1.5f});
  // Without C the sum still is one: -0 + 0 is +0.
  REQUIRE(s.gemm("exact", formats + "--alpha=-0").code == 0);
  CHECK(s.result<std::uint32_t>(ArrayType::float32)[0] == 0);
  check_refused(s.gemm("neutral.mac.float16", formats + "--alpha 2"),
                "--alpha: expected a unit with float32 results, neutral.mac.float16.rne gives "
                "float16");
  check_refused(s.gemm("neutral.mac.tfloat32", formats + "--alpha 0.3"), "--alpha");
  check_refused(s.gemm("exact", formats + "--alpha abc"), "alpha");
}

TEST_CASE("gemm: a unit of one's own from a file", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  const Json row = Json::parse(s.call("units nvidia.h100.wgmma.e4m3.f16 --json").out);
  Json parameters = row["parameters"];
  parameters["name"] = "mine";
  s.file("u.json", parameters.dump());
  const Result result = s.gemm("u.json");
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, Contains("= mine of") && Contains("evidence: described by you"));
  CHECK(s.result<std::uint16_t>(ArrayType::uint16) == std::vector<std::uint16_t>(6, 0x4400));
  check_refused(s.gemm("missing.json"), "missing.json: cannot be opened");
  s.file("bad.json", R"({"numemu_unit": 1, "core": "fussed"})");
  check_refused(s.gemm("bad.json"), "bad.json: core: unknown value 'fussed'; did you mean 'fused'");
  s.file("bad.json", R"({"numemu_unit": 1, "core": "exact", "acumulator": {}})");
  check_refused(s.gemm("bad.json"), "did you mean 'accumulator'");
  s.file("bad.json", "{");
  check_refused(s.gemm("bad.json"), "bad.json: line 1");
}

TEST_CASE("gemm: nothing is written over what is read", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  s.floats("c.npy", {2, 3}, std::vector<float>(6));
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32";
  check_refused(s.gemm(unit, "--out a.npy"), "--out and --a: expected two files");
  check_refused(s.gemm(unit, "--out ./b.npy"), "--out and --b: expected two files");
  check_refused(s.gemm(unit, "--c c.npy --out c.npy"), "--out and --c: expected two files");
  s.file("d.npy.json", "{}");
  check_refused(s.gemm("d.npy.json"), "--unit and --out");
  check_refused(s.gemm(unit, "--out /dev/full"), "/dev/full: expected a regular file");
  check_refused(s.gemm(unit, "--out -"), "--out: expected a file");
  check_refused(s.gemm(unit, ""), "--out: expected a file (or --trace PLACE, --compare OTHER)");
  check_refused(s.gemm(unit, "--out nowhere/d.npy"), "nowhere: no such folder");
  CHECK(s.text("a.npy").size() == 128 + 8);
}

TEST_CASE("gemm: a stochastic register draws as its seed and place say", "[fast]") {
  const GemmFolder s;
  std::vector<float> a(40 * 8), b(8 * 50);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 37 % 101) / 101;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 53 % 97) / 97;
  s.floats("a.npy", {40, 8}, a);
  s.floats("b.npy", {8, 50}, b);
  const std::string formats = " --format-a float32 --format-b float32 --quiet --out ";
  REQUIRE(s.gemm("neutral.mac.e5m10.sr8", "--seed 3" + formats + "x.npy").code == 0);
  REQUIRE(s.gemm("neutral.mac.e5m10.sr8", "--seed 3 --threads 1" + formats + "y.npy").code == 0);
  REQUIRE(s.gemm("neutral.mac.e5m10.sr8", "--seed 3 --reference" + formats + "z.npy").code == 0);
  REQUIRE(s.gemm("neutral.mac.e5m10.sr8", "--seed 4" + formats + "w.npy").code == 0);
  CHECK(s.text("x.npy") == s.text("y.npy"));
  CHECK(s.text("x.npy") == s.text("z.npy"));
  CHECK(s.text("x.npy") != s.text("w.npy"));
}

TEST_CASE("gemm --requantize: codes of sums, and what it refuses", "[fast]") {
  const GemmFolder s;
  s.put<std::int8_t>("a.npy", ArrayType::int8, {1, 2}, {3, -1});
  s.put<std::int8_t>("b.npy", ArrayType::int8, {2, 3}, {5, 100, 1, 0, -100, 2});  // 15, 400, 1
  s.put<std::int32_t>("bias.npy", ArrayType::int32, {3}, {-4, 0, 0});
  s.put<std::int32_t>("m.npy", ArrayType::int32, {3}, {1 << 30, 1 << 30, 1 << 30});
  s.put<std::int32_t>("shift.npy", ArrayType::int32, {3}, {0, 0, -1});
  const std::string unit = "intel.emr.tdpbssd", out = " --out d.npy ";
  const auto codes = [&](const std::string& more) {
    const Result result = s.gemm(unit, out + more);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return s.result<std::uint8_t>(ArrayType::uint8);
  };
  using Codes = std::vector<std::uint8_t>;
  // (11, 400, 1) / 2: halves upward, to even; and the end of int8.
  CHECK(codes("--requantize fixed-point-single --bias bias.npy --factor 0.5") == Codes{6, 127, 1});
  CHECK(codes("--requantize float --bias bias.npy --factor 0.5 --zero-point 1") ==
        Codes{7, 127, 1});
  // No double is a tenth: the nearest one serves.
  CHECK(codes("--requantize float --bias bias.npy --factor 0.1") == Codes{1, 40, 0});
  CHECK(codes("--requantize fixed-point-double --multiplier m.npy --shift shift.npy "
              "--format-d uint8 --high 250") == Codes{8, 200, 1});
  CHECK(codes("--requantize fixed-point-single --multiplier m.npy --shift shift.npy --low=-3 "
              "--zero-point=-10") == Codes{254, 127, 253});
  CHECK(Json::parse(s.text("d.npy.json"))["format"] == "int8");
  const Result said = s.gemm(unit, out + "--requantize float --factor 0.5 --json");
  CHECK(Json::parse(said.out)["requantize"] == "float");
  CHECK(Json::parse(said.out)["format_d"] == "int8");
  CHECK_THAT(
      s.gemm(unit, out + "--requantize float --factor 0.5").out,
      Contains("d.npy: int8 [1, 3] = ") && Contains("requantized by float outside the unit"));
  s.floats("f.npy", {2}, {1, 2});
  s.floats("g.npy", {3}, {1, -2, 1});
  for (const auto& [options, message] : std::vector<std::pair<std::string, std::string>>{
           {"--bias bias.npy", "--bias: expected --requantize, too"},
           {"--zero-point 3", "--zero-point: expected --requantize, too"},
           {"--requantize float", "--requantize: expected --factor"},
           {"--requantize fixed-point-single", "expected --factor, or --multiplier and --shift"},
           {"--requantize fixed-point-single --multiplier 5", "--multiplier and --shift"},
           {"--requantize float --multiplier 5 --shift 0", "--multiplier, --shift: expected"},
           {"--requantize fixed-point-single --multiplier 5 --shift 31",
            "--shift: expected a whole number from -31 to 30, found 31"},
           {"--requantize float --factor=-1",
            "--factor: channel 0: expected a factor of at least 0"},
           {"--requantize float --factor f.npy", "f.npy: shape: expected [3]"},
           {"--requantize float --factor g.npy", "g.npy: channel 1: expected a factor"},
           {"--requantize float --factor one", "--factor: expected a number or a file NAME.npy"},
           {"--requantize float --factor 1 --bias f.npy", "f.npy: dtype: expected int32"},
           {"--requantize float --factor 1 --zero-point 128",
            "--zero-point: expected a number of int8"},
           {"--requantize float --factor 1 --low 5 --high 4", "--low: expected at most --high"},
           {"--requantize float --factor 1 --format-d float16", "--format-d: expected integers"},
           {"--requantize float --factor 1 --alpha 2", "--alpha: not allowed with --requantize"},
           {"--requantize round --factor 1", "--requantize"}})
    check_refused(s.gemm(unit, out + options), message);
  s.e4m3();
  check_refused(s.gemm("h100.wgmma.e4m3.f32", out + "--requantize float --factor 1"),
                "--requantize: expected a unit with int32 results");
}

}  // namespace gemm_test
