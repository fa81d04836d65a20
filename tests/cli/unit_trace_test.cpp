// Traces of one output as text and as JSON: they end in the bits of the product itself.
#include "tests/cli/gemm_fixture.hpp"

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;
using Json = nlohmann::ordered_json;

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
  CHECK(
      result.out.starts_with("D[0,0] of nvidia.h100.wgmma.e4m3.f32: float8_e4m3fn x "
                             "float8_e4m3fn, K = 2\nstep 0, k 0..31, largest exponent 8\n"));
  CHECK_THAT(result.out, Contains("0x1p+8") && Contains("0x1p-9") && Contains("all"));
  CHECK(result.out.ends_with("D[0,0] = 43800000\n"));
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
  check_refused(s.gemm(unit, "--trace 0,0 --out d.npy"), "--trace: expected no --out beside it");
  check_refused(s.gemm("host.eigen.f32", "--trace 0,0 --format-a e4m3fn --format-b e4m3fn"),
                "host.eigen.f32");
  check_refused(s.gemm(unit, "--trace 0,0 --alpha 2"), "--alpha");
}
