// Traces of one output as text and as JSON: they end in the bits of the product itself.
#include "formats/storage/json.hpp"
#include "tests/cli/gemm_fixture.hpp"

namespace unit_trace_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

Json trace(const GemmFolder& s, const std::string& unit, const std::string& more = "") {
  const Result result = s.gemm(unit, "--trace 0,0 --json " + more);
  INFO(result.err);
  REQUIRE(result.code == 0);
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("unit trace: text shows products, what was cut and the register", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 2}, {0x78, 0x01});  // 256 and 2^-9
  s.bytes("b.npy", {2, 1}, {0x38, 0x38});
  const Result result = s.gemm("nvidia.h100.wgmma.e4m3.f32", "--trace 0,0");
  REQUIRE(result.code == 0);
  CHECK(result.out.starts_with(
      "D[0,0] of nvidia.h100.wgmma.e4m3.f32: float8_e4m3fn x float8_e4m3fn, K = 2\n"
      "step 0, k 0..1 and 30 of padding, largest exponent 8\n"));
  CHECK_THAT(result.out, Contains("0x1p+8 (256)") && Contains("0x0p+0  0x1p-9 (0.001953125)"));
  CHECK(result.out.ends_with(
      " = 0x1p+8 (256)\nexact 0x1.00008p+8 (256.001953), register off by -0x1p-9 (-0.001953125)\n"
      "D[0,0] = 43800000 = 0x1p+8 (256)\n"));
  CHECK(result.err.empty());
}

TEST_CASE("unit trace: JSON names k, codes, exponents and what was kept", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 2}, {0x78, 0x01});
  s.bytes("b.npy", {2, 1}, {0x38, 0x38});
  const Json json = trace(s, "nvidia.h100.wgmma.e4m3.f32");
  CHECK(json["unit"] == "nvidia.h100.wgmma.e4m3.f32");
  CHECK(json["k"] == 2);
  CHECK(json["d"] == "43800000");
  REQUIRE(json["steps"].size() == 1);
  const Json& step = json["steps"][0];
  CHECK(step["largest_exponent"] == 8);
  CHECK(step["sum"] == "0x1p+8");
  const Json& second = step["terms"][1];
  CHECK(second["k"] == 1);
  CHECK(second["a"] == "01");
  CHECK(second["exponent"] == -6);  // a subnormal: its format's smallest
  CHECK(second["exact"] == "0x1p-9");
  CHECK(second["kept"] == "0x0p+0");
  CHECK(second["cut"] == true);
  CHECK(second["lost"] == "0x1p-9");
  CHECK(step["exact"] == "0x1.00008p+8");
  CHECK(step["off_by"] == "-0x1p-9");
  CHECK(step["terms"][0]["cut"] == false);
}

TEST_CASE("unit trace: every core ends in the bits of the product", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  for (const char* unit :
       {"nvidia.ada.mma.e4m3.f32", "nvidia.h100.mma.e4m3.f32", "nvidia.b200.mma.e4m3.f16",
        "arm.neoverse.fdot.e4m3.f32", "exact", "f32.sequential", "neutral.mac.float16",
        "neutral.chunk2.float16", "neutral.kahan.float16", "neutral.mac.e8m20"}) {
    INFO(unit);
    const bool any = std::string(unit).find("e4m3") == std::string::npos;
    const std::string formats = any ? " --format-a e4m3fn --format-b e4m3fn " : "";
    const Json json = trace(s, unit, formats);
    const std::string d = json["d"];
    CHECK((d == "40800000" || d == "4400"));
    CHECK_FALSE(json["steps"].empty());
  }
}

TEST_CASE("unit trace: sparse padding is no product", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 4}, {0x38, 0x40, 0x44, 0x48});
  s.bytes("b.npy", {8, 1}, {0x38, 0x40, 0x44, 0x48, 0x30, 0x28, 0x20, 0x18});
  s.bytes("meta.npy", {1, 4}, {0, 2, 1, 3});
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32.sp24", meta = "--meta meta.npy ";
  const Json step = trace(s, unit, meta)["steps"][0];
  CHECK(step["what"] == "step 0, 4 of k 0..7 and 28 of padding");
  std::vector<int> ks;
  for (const Json& term : step["terms"]) {
    if (term.contains("k")) ks.push_back(term["k"]);
  }
  CHECK(ks == std::vector<int>{0, 2, 5, 7});
  const Json& padding = step["terms"][4];
  CHECK(padding["what"] == "padding");
  CHECK(padding["count"] == 28);
  CHECK(padding["exact"] == "0x0p+0");
  CHECK_FALSE(padding.contains("a"));
  CHECK_THAT(s.gemm(unit, "--trace 0,0 " + meta).out, Contains("\npadding x28  "));
}

TEST_CASE("unit trace: block scales stand beside their products", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 2}, {0x38, 0x40});
  s.bytes("b.npy", {2, 1}, {0x38, 0x38});
  s.bytes("sa.npy", {1, 1}, {130});
  s.bytes("sb.npy", {1, 1}, {126});
  const Json step = trace(s, "nvidia.b200.tcgen05.e4m3.f32.mx32",
                          "--scale-a sa.npy --scale-b sb.npy")["steps"][0];
  CHECK(step["terms"][1]["scale_a"] == "0x1p+3");
  CHECK(step["terms"][1]["scale_b"] == "0x1p-1");
  CHECK(step["terms"][1]["exact"] == "0x1p+3");
  CHECK(step["sum"] == "0x1.8p+3");
}

TEST_CASE("unit trace: integers are decimal, and the register is no C", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 5}, {5, 0xfb, 100, 7, 8});
  s.bytes("b.npy", {5, 1}, {2, 3, 0x9c, 1, 1});
  s.put("c.npy", ArrayType::int32, {1, 1}, std::vector<std::int32_t>{1000});
  const Json json = trace(s, "intel.emr.vpdpbusd.u8xs8.s32", "--c c.npy");
  REQUIRE(json["steps"].size() == 2);
  const Json &first = json["steps"][0], &second = json["steps"][1];
  CHECK(first["terms"][0]["what"] == "C");
  CHECK(first["terms"][0]["exact"] == "1000");
  CHECK(first["terms"][3]["exact"] == "-10000");
  CHECK(first["register"] == "ffffdfda = -8230");
  CHECK(second["instruction"] == 1);
  CHECK(second["terms"][0]["what"] == "register");
  CHECK(second["terms"][0]["exact"] == "-8230");
  CHECK(json["value"] == "-8222");
  CHECK_THAT(s.gemm("intel.emr.vpdpbusd.u8xs8.s32", "--trace 0,0").out,
             Contains("instruction 1\nstep 1, k 4 and 3 of padding\n") && Contains("no C"));
}

TEST_CASE("unit trace: chunks and chains show what is added to what", "[fast]") {
  const GemmFolder s;
  s.put("a.npy", ArrayType::uint16, {1, 3}, std::vector<std::uint16_t>{0x3c00, 0x4000, 0x4200});
  s.put("b.npy", ArrayType::uint16, {3, 1}, std::vector<std::uint16_t>{0x3c00, 0x3c00, 0x3c00});
  const std::string halves = "--format-a float16 --format-b float16";
  const Json steps = trace(s, "neutral.chunk2.float16", halves)["steps"];
  REQUIRE(steps.size() == 4);
  CHECK(steps[0]["what"] == "chunk 0, k 0..1");
  CHECK(steps[0]["terms"][2]["register"] == "0x1.8p+1");
  CHECK(steps[3]["what"] == "addition of chunk 1");
  CHECK(steps[3]["terms"][0]["what"] == "register");
  CHECK(steps[3]["terms"][1]["what"] == "chunk 1");
  CHECK(steps[3]["sum"] == "0x1.8p+2");
  const Json kahan = trace(s, "neutral.kahan.float16", halves)["steps"][0];
  CHECK(kahan["what"] == "chain, k 0..2");
  CHECK(kahan["terms"][3]["error"] == "0x0p+0");
}

TEST_CASE("unit trace: a positive NaN is one, wherever it stands", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 2}, {0x7f, 0x38});
  s.bytes("b.npy", {2, 1}, {0x38, 0x38});
  for (const char* unit : {"nvidia.h100.wgmma.e4m3.f32", "nvidia.ada.mma.e4m3.f32"}) {
    INFO(unit);
    const std::string text = s.gemm(unit, "--trace 0,0").out;
    CHECK_THAT(text, Contains(" = nan\n") && !Contains("-nan"));
  }
}

TEST_CASE("unit trace: float64 products are exact", "[fast]") {
  const GemmFolder s;
  s.put("a.npy", ArrayType::float64, {1, 1}, std::vector<double>{1 + 0x1p-52});
  s.put("b.npy", ArrayType::float64, {1, 1}, std::vector<double>{1 + 0x1p-52});
  const Json json = trace(s, "nvidia.a100.mma.f64.f64");
  CHECK(json["d"] == "3ff0000000000002");
  const std::string exact = json["steps"][0]["terms"][1]["exact"];
  CHECK(exact.starts_with("0x1.0000000000002"));
}

TEST_CASE("unit trace: two parts show each product as it was added", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 2}, {0x38, 0x38});
  s.bytes("b.npy", {2, 1}, {0x38, 0x38});
  const Json json = trace(s, "amd.mi300.mfma.e4m3fnuz.f32");
  CHECK(json["steps"][0]["terms"][0]["cut"] == false);
  CHECK(json["steps"][0]["terms"][1]["cut"] == false);
  CHECK(json["steps"][0]["terms"][1]["kept"] == json["steps"][0]["terms"][1]["exact"]);
}

TEST_CASE("unit trace: places outside the product, and units without steps", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32";
  for (const char* place : {"2,0", "0,3", "-1,0", "0", "0,0,0", "x,y", "1e0,0", ""}) {
    INFO(place);
    const Result result = s.gemm(unit, "--trace=" + std::string(place));
    CHECK(result.code == 2);
    CHECK(result.out.empty());
  }
  check_refused(s.gemm(unit, "--trace 2,0"), "--trace 2,0: expected m,n with m < 2 and n < 3");
  for (const char* place : {"0", "0,"})
    check_refused(
        s.gemm(unit, "--trace " + std::string(place)),
        "--trace " + std::string(place) + ": expected m,n with m < 2 and n < 3, n is missing");
  check_refused(s.gemm(unit, "--trace 0,0 --out d.npy"), "--trace: not allowed with --out");
  check_refused(s.gemm("host.eigen.f32", "--trace 0,0 --format-a e4m3fn --format-b e4m3fn"),
                "host.eigen.f32");
  check_refused(s.gemm(unit, "--trace 0,0 --alpha 2"), "--alpha");
}

}  // namespace unit_trace_test
