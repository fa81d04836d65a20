// numemu dot from outside: dots are the diagonal of the product, flags and seeds included.
#include "formats/storage/json.hpp"
#include "tests/cli/gemm_fixture.hpp"

namespace dot_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

constexpr std::int64_t kDots = 40, kDepth = 64;

/// Operands of dots in a.npy and b.npy, and the same B as the columns of kn.npy.
struct DotFolder : GemmFolder {
  explicit DotFolder(std::uint8_t low = 0x28, int span = 32) {
    std::vector<std::uint8_t> a(kDots * kDepth), b(kDots * kDepth), kn(kDots * kDepth);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<std::uint8_t>(low + static_cast<int>(i * 13 % 97) % span + i % 2 * 0x80);
      b[i] = static_cast<std::uint8_t>(low + static_cast<int>(i * 29 % 89) % span);
      kn[i % kDepth * kDots + i / kDepth] = b[i];
    }
    bytes("a.npy", {kDots, kDepth}, a);
    bytes("b.npy", {kDots, kDepth}, b);
    bytes("kn.npy", {kDepth, kDots}, kn);
  }
  Result dot(const std::string& unit, const std::string& more = "--out d.npy") const {
    return call("dot --unit " + unit + " --a a.npy --b b.npy " + more);
  }
};

}  // namespace

TEST_CASE("dot: results are the diagonal of the product", "[fast]") {
  const DotFolder s;
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32";
  const Result result = s.dot(unit);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.out, Contains("d.npy: float32 [40] = " + unit));
  const auto d = s.result<std::uint32_t>(ArrayType::float32);
  REQUIRE(s.call("gemm --unit " + unit + " --a a.npy --b kn.npy --out g.npy").code == 0);
  const auto g = s.result<std::uint32_t>(ArrayType::float32, "g.npy");
  for (std::size_t i = 0; i < kDots; ++i) CHECK(d[i] == g[i * kDots + i]);
  REQUIRE(s.dot(unit, "--out e.npy --reference --quiet").code == 0);
  CHECK(s.text("d.npy") == s.text("e.npy"));
  CHECK(Json::parse(s.dot(unit, "--out d.npy --json").out)["products"] == 40);
}

TEST_CASE("dot: C, a shared operand and one dot alone", "[fast]") {
  const DotFolder s;
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32";
  s.floats("c.npy", {kDots}, std::vector<float>(kDots, 1024));
  s.bytes("v.npy", {kDepth}, std::vector<std::uint8_t>(kDepth, 0x38));
  REQUIRE(s.dot(unit, "--c c.npy --out d.npy").code == 0);
  REQUIRE(s.call("dot --unit " + unit + " --a a.npy --b v.npy --c c.npy --out d.npy").code == 0);
  CHECK(s.npy().shape == ArrayShape{kDots});
  REQUIRE(s.call("dot --unit " + unit + " --a v.npy --b v.npy --out d.npy").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{64});
  CHECK_THAT(s.dot(unit, "--trace 39").out, Contains("D[39] of " + unit));
  CHECK(Json::parse(s.dot(unit, "--trace 39 --json").out)["n"] == 39);
  check_refused(s.dot(unit, "--trace 40"), "--trace 40: expected n with n < 40");
  check_refused(s.call("dot --unit " + unit + " --a a.npy --b kn.npy --out d.npy"),
                "a.npy, kn.npy: shape: expected as many products in both");
  s.bytes("short.npy", {kDots, 8}, std::vector<std::uint8_t>(kDots * 8));
  check_refused(s.call("dot --unit " + unit + " --a a.npy --b short.npy --out d.npy"),
                "a.npy, short.npy: shape: expected N x K and N x K, found [40, 64] and [40, 8]");
  s.bytes("t.npy", {1, 2, 4}, std::vector<std::uint8_t>(8));
  check_refused(s.call("dot --unit " + unit + " --a t.npy --b b.npy --out d.npy"),
                "t.npy: shape: expected N x K, found [1, 2, 4]");
  s.floats("c.npy", {2}, {1, 2});
  check_refused(s.dot(unit, "--c c.npy --out d.npy"), "c.npy: shape: expected [40] (N), found [2]");
}

TEST_CASE("dot: scales and metadata are one row for each dot", "[fast]") {
  const DotFolder s;
  const std::string scaled = "nvidia.b200.tcgen05.e4m3.f32.mx32";
  std::vector<std::uint8_t> sa(kDots * 2), sb(kDots * 2), kn(kDots * 2);
  for (std::size_t i = 0; i < sa.size(); ++i) {
    sa[i] = static_cast<std::uint8_t>(120 + i % 9);
    sb[i] = static_cast<std::uint8_t>(122 + i % 7);
    kn[i % 2 * kDots + i / 2] = sb[i];
  }
  s.bytes("sa.npy", {kDots, 2}, sa);
  s.bytes("sb.npy", {kDots, 2}, sb);
  s.bytes("skn.npy", {2, kDots}, kn);
  REQUIRE(s.dot(scaled, "--scale-a sa.npy --scale-b sb.npy --out d.npy").code == 0);
  REQUIRE(s.call("gemm --unit " + scaled +
                 " --a a.npy --b kn.npy --scale-a sa.npy --scale-b skn.npy --out g.npy")
              .code == 0);
  const auto d = s.result<std::uint32_t>(ArrayType::float32);
  const auto g = s.result<std::uint32_t>(ArrayType::float32, "g.npy");
  for (std::size_t i = 0; i < kDots; ++i) CHECK(d[i] == g[i * kDots + i]);
  check_refused(s.dot(scaled, "--scale-a sa.npy --scale-b skn.npy --out d.npy"),
                "skn.npy: shape: expected [40, 2] (N x blocks");
  const std::string sparse = "nvidia.h100.wgmma.e4m3.f32.sp24";
  s.bytes("kept.npy", {2, 4}, {0x38, 0x39, 0x3a, 0x3b, 0x30, 0x31, 0x32, 0x33});
  s.bytes("b8.npy", {2, 8}, std::vector<std::uint8_t>(16, 0x38));
  s.bytes("meta.npy", {2, 4}, {0, 1, 2, 3, 1, 3, 0, 2});
  REQUIRE(s.call("dot --unit " + sparse + " --a kept.npy --b b8.npy --meta meta.npy --out d.npy")
              .code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{4.75, 2.375});
}

TEST_CASE("dot: a dot draws by its number", "[fast]") {
  const DotFolder s;
  const std::string unit = "neutral.mac.e5m10.sr8", seed = kAnyE4m3 + " --quiet --seed 5";
  REQUIRE(s.dot(unit, seed).code == 0);
  const auto d = s.result<std::uint16_t>(ArrayType::uint16);
  REQUIRE(s.dot(unit, seed + " --threads 1").code == 0);
  CHECK(s.result<std::uint16_t>(ArrayType::uint16) == d);
  REQUIRE(s.dot(unit, kAnyE4m3 + " --seed 6").code == 0);
  CHECK(s.result<std::uint16_t>(ArrayType::uint16) != d);
  CHECK(Json::parse(s.text("d.npy.json"))["seed"] == 6);
}

TEST_CASE("dot: flags of each output, refused where a unit has none", "[fast]") {
  const GemmFolder s;
  s.floats("a.npy", {4, 1}, {1, 0x1p127f, 0x1p-126f, 0});
  s.floats("b.npy", {4, 1}, {1, 4, 0x1.000002p-1f, std::numeric_limits<float>::infinity()});
  const std::string formats = " --format-a float32 --format-b float32 --out d.npy";
  REQUIRE(s.call("dot --unit f32.sequential --a a.npy --b b.npy --flags f.npy" + formats).code ==
          0);
  CHECK(s.result<std::uint8_t>(ArrayType::uint8, "f.npy") ==
        std::vector<std::uint8_t>{0, 5, 3, 16});
  check_refusals(s, {{"dot --unit host.eigen.f32 --a a.npy --b b.npy --flags f.npy" + formats,
                      "unit host.eigen.f32 has no exception flags"},
                     {"dot --unit neutral.mac.int16 --a a.npy --b b.npy --flags f.npy" + formats,
                      "has no exception flags: expected a unit with a floating register"},
                     {"dot --unit f32.sequential --a a.npy --b b.npy --flags d.npy" + formats,
                      "--out and --flags: expected two files"},
                     {"dot --unit f32.sequential --a a.npy --b b.npy --flags f.npy --trace 0",
                      "--flags: not allowed with --trace"}});
}

TEST_CASE("dot: codes from hexadecimal text; old sidecars and half a unit are refused", "[fast]") {
  const DotFolder s;
  const std::string unit = "nvidia.h100.wgmma.e4m3.f32";
  s.file("v.txt", "38\n40\n44\n48\n");
  REQUIRE(s.call("encode --text --codes hex --from e4m3fn --format e4m3fn --in v.txt --out v.npy "
                 "--quiet")
              .code == 0);
  REQUIRE(s.call("dot --unit " + unit + " --a v.npy --b v.npy --out d.npy").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>{1 + 4 + 9 + 16});
  // The file changes under its sidecar.
  s.bytes("v.npy", {4}, {0, 0, 0, 0});
  check_refused(s.call("dot --unit " + unit + " --a v.npy --b v.npy --out d.npy"), "v.npy.json");
  s.file("half.json", R"({"numemu_unit": 1, "core": "fused", "group": 16})");
  const Result half = s.dot("half.json");
  CHECK(half.code == 2);
  CHECK_THAT(half.err, Catch::Contains(
                           "half.json: expected a key 'alignment.fraction_bits' with core fused"));
}

}  // namespace dot_test
