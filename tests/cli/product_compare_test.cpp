// Comparisons with other results and other units: counts, which is nearer, where the two part.
#include <limits>

#include "formats/storage/json.hpp"
#include "tests/cli/gemm_fixture.hpp"

namespace product_compare_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

const std::string kUnit = "nvidia.h100.wgmma.e4m3.f32", kLowered = "nvidia.h100.mma.e4m3.f32";

/// Two dots: 256 + 2^-9 + 2^-8, and 1 + 1.
struct CompareFolder : GemmFolder {
  CompareFolder() {
    bytes("a.npy", {2, 3}, {0x78, 0x01, 0x02, 0x38, 0x38, 0});
    bytes("b.npy", {2, 3}, std::vector<std::uint8_t>(6, 0x38));
    floats("same.npy", {2}, {256, 2});
    floats("other.npy", {2}, {256 + 0x1.8p-8f, 2});
  }
  Result dot(const std::string& more, const std::string& unit = kUnit) const {
    return call("dot --unit " + unit + " --a a.npy --b b.npy " + more);
  }
};

}  // namespace

TEST_CASE("compare: results that differ, the nearer one, and what the unit lost", "[fast]") {
  const CompareFolder s;
  const Result none = s.dot("--compare same.npy");
  CHECK(none.code == 0);
  CHECK(none.out == "same.npy against " + kUnit + ": 0 of 2 outputs differ\n");
  const Result result = s.dot("--compare other.npy");
  REQUIRE(result.code == 0);
  CHECK_THAT(
      result.out,
      Contains("other.npy against " + kUnit + ": 1 of 2 outputs differ, by at most 192 ulps\n") &&
          Contains("nearer to the exact sum: other.npy 1, " + kUnit + " 0, neither 0\n") &&
          Contains("D[0]    0x1p+8 (256)                0x1.00018p+8 (256.005859)  192 ulps") &&
          Contains("D[0]: the given result is the exact sum rounded once by rne, rna, rtz, rup, "
                   "rdn\n") &&
          Contains("D[0]: its largest loss is at k 2 of step 0, k 0..2 and 29 of padding"));
  const Json json = Json::parse(s.dot("--compare other.npy --json").out);
  CHECK(json["differ"] == 1);
  CHECK(json["other_nearer"] == 1);
  CHECK(json["most_ulps"] == 192);
  CHECK(json["worst"][0]["n"] == 0);
  CHECK(json["worst"][0]["exact"] == "0x1.00018p+8");
  CHECK(json["worst"][0]["explanation"].size() == 4);
  CHECK(Json::parse(s.dot("--compare other.npy --worst 0 --json").out)["worst"].empty());
  check_refused(s.dot("--out d.npy --worst 2"), "--worst: expected --compare OTHER, too");
}

TEST_CASE("compare: two units side by side, up to the step that differs", "[fast]") {
  const CompareFolder s;
  const Result result = s.dot("--compare " + kLowered);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out,
             Contains(kLowered + " against " + kUnit + ": 1 of 2 outputs differ") &&
                 Contains("D[0] parts in step 0, k 0..2 and 29 of padding: 0x1p+8 (256) against "
                          "0x1.00018p+8 (256.005859) in step ") &&
                 Contains(kUnit + " ") && Contains(" | " + kLowered + "\n") &&
                 Contains(" | exact 0x1.00018p+8 (256.005859)\n") && !Contains("addition of no C"));
  const Json worst = Json::parse(s.dot("--compare " + kLowered + " --json").out)["worst"];
  REQUIRE(worst.size() == 1);
  CHECK(worst[0]["products_agreed"] == 0);
  CHECK(worst[0]["unit_steps"].size() == 1);
  CHECK(worst[0]["unit_steps"][0]["off_by"] == "-0x1.8p-8");
}

TEST_CASE("compare: a chain is shown from the last sum that agrees to the first that does not",
          "[fast]") {
  const GemmFolder s;
  s.floats("a.npy", {1, 40}, std::vector<float>(40, 1));
  std::vector<float> b(40, 1);
  b[33] = 0x1p-8f;
  s.floats("b.npy", {40, 1}, b);
  const Result result = s.gemm("neutral.mac.float16",
                               "--format-a float32 --format-b float32 --compare "
                               "neutral.mac.e5m10.rtz");
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, Contains("0 of 1 outputs differ"));
  b[33] = 0x1.8p-6f;
  s.floats("b.npy", {40, 1}, b);
  const Json worst = Json::parse(s.gemm("neutral.mac.float16",
                                        "--format-a float32 --format-b float32 --json --compare "
                                        "neutral.mac.e5m10.rtz")
                                     .out)["worst"];
  REQUIRE(worst.size() == 1);
  CHECK(worst[0]["products_agreed"] == 33);
  // The product before, which both agree in, and the one that parts them.
  CHECK(worst[0]["unit_steps"][0]["terms"].size() == 2);
  CHECK(worst[0]["unit_steps"][0]["terms"][1]["k"] == 33);
  CHECK(worst[0]["m"] == 0);
}

TEST_CASE("compare: NaN is NaN, and beside a number apart", "[fast]") {
  const CompareFolder s;
  s.bytes("a.npy", {2, 3}, {0x7f, 0x01, 0x02, 0x38, 0x38, 0});
  s.put("nan.npy", ArrayType::float32, {2}, std::vector<std::uint32_t>{0xffc00001, 0x40000000});
  CHECK_THAT(s.dot("--compare nan.npy").out, Contains("0 of 2 outputs differ"));
  CHECK_THAT(s.dot("--compare same.npy").out,
             Contains("1 of 2 outputs differ, by at most NaN\n") && Contains("nan"));
}

TEST_CASE("compare: what cannot be compared is refused", "[fast]") {
  const CompareFolder s;
  s.floats("long.npy", {3}, {1, 2, 3});
  check_refused(s.dot("--compare long.npy"),
                "long.npy: shape: expected [2] (the shape of D), found [3]");
  check_refused(s.dot("--compare nvidia.h100.wgmma.e4m3.f16"),
                "have different result types: float16 and float32");
  check_refused(s.dot("--compare nvidia.h100.wgmma.e5m2.f32"), "does not take operands");
  check_refused(s.dot("--compare nvidia.b200.tcgen05.e4m3.f32.mx32"),
                "have different block scales");
  check_refused(s.dot("--compare nvidia.h100.wgmma.e4m3.f33"), "did you mean");
  check_refused(s.dot("--compare same.npy --trace 0"), "--trace: not allowed with --compare");
  check_refused(s.dot("--compare same.npy --out same.npy"),
                "--out and --compare: expected two files");
  check_refused(s.dot("--compare same.npy --flags f.npy"), "--flags: expected --out, too");
  // Beside the comparison, D is written where --out says.
  CHECK(s.dot("--compare same.npy --out d.npy").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{256, 2});
}

}  // namespace product_compare_test
