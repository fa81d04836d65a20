// The files of a product: shapes, types of C, scales and metadata, and what is refused.
#include <filesystem>
#include <limits>

#include "formats/storage/sidecar.hpp"
#include "tests/cli/gemm_fixture.hpp"

namespace product_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

const std::string kDense = "nvidia.h100.wgmma.e4m3.f32";
const std::string kSparse = kDense + ".sp24";
const std::string kScaled = "nvidia.b200.tcgen05.e4m3.f32.mx32";

}  // namespace

TEST_CASE("gemm arrays: shapes that do not fit each other", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  s.bytes("v.npy", {4}, {1, 2, 3, 4});
  s.bytes("b5.npy", {5, 3}, std::vector<std::uint8_t>(15));
  s.floats("c.npy", {2, 2}, {1, 2, 3, 4});
  const auto run = [&](const std::string& files) {
    return s.call("gemm --unit " + kDense + " --out d.npy " + files);
  };
  check_refused(run("--a a.npy --b b5.npy"),
                "a.npy, b5.npy: shape: expected M x K and K x N of one K, found [2, 4] and [5, 3]");
  // A vector is one row of A, or one column of B.
  REQUIRE(run("--a v.npy --b b.npy").code == 0);
  CHECK(s.npy().shape == ArrayShape{1, 3});
  REQUIRE(run("--a a.npy --b v.npy").code == 0);
  CHECK(s.npy().shape == ArrayShape{2, 1});
  REQUIRE(run("--a a.npy --b v.npy --b-layout nk").code == 0);
  CHECK(s.npy().shape == ArrayShape{2, 1});
  check_refused(run("--a v.npy --b b5.npy"),
                "v.npy, b5.npy: shape: expected M x K and K x N of one K, found [4] and [5, 3]");
  s.bytes("t.npy", {1, 1, 2, 4}, std::vector<std::uint8_t>(8));
  for (const char* files : {"--a t.npy --b b.npy", "--a a.npy --b t.npy"})
    check_refused(run(files),
                  "t.npy: shape: expected a matrix or a batch of matrices, found [1, 1, 2, 4]");
  check_refused(run("--a a.npy --b b.npy --c c.npy"),
                "c.npy: shape: expected [2, 3] (M x N), found [2, 2]");
  check_refused(run("--a a.npy --b none.npy"), "none.npy: cannot open");
  check_refused(run("--a - --b b.npy"), "--a: expected a file");
}

TEST_CASE("gemm arrays: the operand of the wrong layout is named, and the right one", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  s.bytes("nk.npy", {3, 4}, std::vector<std::uint8_t>(12, 0x38));
  s.bytes("km.npy", {4, 2}, std::vector<std::uint8_t>(8, 0x38));
  const auto run = [&](const std::string& files) {
    return s.call("gemm --unit " + kDense + " --out d.npy " + files);
  };
  check_refused(
      run("--a a.npy --b nk.npy"),
      "nk.npy: shape: expected K x N, found [3, 4]: with the K of a.npy it is N x K, give "
      "--b-layout nk");
  REQUIRE(run("--a a.npy --b nk.npy --b-layout nk").code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>(6, 4));
  check_refused(run("--a a.npy --b b.npy --b-layout nk"),
                "b.npy: shape: expected N x K, found [4, 3]: with the K of a.npy it is K x N, give "
                "--b-layout kn");
  for (const char* b : {"--b b.npy", "--b nk.npy --b-layout nk"})
    check_refused(run(std::string("--a km.npy ") + b),
                  "km.npy: shape: expected M x K, found [4, 2]");
  check_refused(run("--a a.npy --b b.npy --b-layout mk"), "--b-layout");
}

TEST_CASE("gemm arrays: B by columns has the bits of B by rows, scales too", "[fast]") {
  const GemmFolder s;
  std::vector<std::uint8_t> a(2 * 64), kn(64 * 3), nk(3 * 64);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(0x20 + i * 7 % 40);
  for (std::size_t k = 0; k < 64; ++k) {
    for (std::size_t n = 0; n < 3; ++n)
      nk[n * 64 + k] = kn[k * 3 + n] = static_cast<std::uint8_t>(0x28 + (k * 5 + n * 11) % 32);
  }
  s.bytes("a.npy", {2, 64}, a);
  s.bytes("b.npy", {64, 3}, kn);
  s.bytes("nk.npy", {3, 64}, nk);
  s.bytes("sa.npy", {2, 2}, {127, 128, 120, 130});
  s.bytes("sb.npy", {2, 3}, {127, 125, 120, 128, 126, 131});
  s.bytes("sn.npy", {3, 2}, {127, 128, 125, 126, 120, 131});
  REQUIRE(s.gemm(kScaled, "--scale-a sa.npy --scale-b sb.npy --out d.npy").code == 0);
  REQUIRE(
      s.call("gemm --unit " + kScaled +
             " --a a.npy --b nk.npy --b-layout nk --scale-a sa.npy --scale-b sn.npy --out e.npy")
          .code == 0);
  CHECK(s.text("d.npy") == s.text("e.npy"));
  check_refused(s.call("gemm --unit " + kScaled +
                       " --a a.npy --b nk.npy --b-layout nk --scale-a "
                       "sa.npy --scale-b sb.npy --out e.npy"),
                "sb.npy: shape: expected [3, 2] (N x blocks, one scale per 32 of K = 64)");
}

TEST_CASE("gemm arrays: batches are the products one by one", "[fast]") {
  const GemmFolder s;
  std::vector<std::uint8_t> a(3 * 2 * 4), b(3 * 4 * 5);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(0x20 + i * 7 % 40);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint8_t>(0x20 + i * 11 % 40);
  std::vector<float> c(3 * 2 * 5);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i) / 7;
  s.bytes("a.npy", {3, 2, 4}, a);
  s.bytes("b.npy", {3, 4, 5}, b);
  s.floats("c.npy", {3, 2, 5}, c);
  s.floats("c0.npy", {2, 5}, {c.begin(), c.begin() + 10});
  s.bytes("b0.npy", {4, 5}, {b.begin(), b.begin() + 20});
  REQUIRE(s.gemm(kDense, "--c c.npy --out d.npy").code == 0);
  CHECK(s.npy().shape == ArrayShape{3, 2, 5});
  const auto d = s.result<std::uint32_t>(ArrayType::float32);
  for (std::ptrdiff_t p = 0; p < 3; ++p) {
    s.bytes("a1.npy", {2, 4}, {a.begin() + p * 8, a.begin() + p * 8 + 8});
    s.bytes("b1.npy", {4, 5}, {b.begin() + p * 20, b.begin() + p * 20 + 20});
    s.floats("c1.npy", {2, 5}, {c.begin() + p * 10, c.begin() + p * 10 + 10});
    REQUIRE(
        s.call("gemm --unit " + kDense + " --a a1.npy --b b1.npy --c c1.npy --out e.npy").code ==
        0);
    CHECK(s.result<std::uint32_t>(ArrayType::float32, "e.npy") ==
          std::vector<std::uint32_t>(d.begin() + p * 10, d.begin() + p * 10 + 10));
  }
  REQUIRE(s.gemm(kDense, "--c c0.npy --out e.npy").code == 0);
  CHECK(s.npy("e.npy").shape == ArrayShape{3, 2, 5});
  REQUIRE(s.call("gemm --unit " + kDense + " --a a.npy --b b0.npy --out e.npy").code == 0);
  CHECK(s.npy("e.npy").shape == ArrayShape{3, 2, 5});
  CHECK_THAT(s.gemm(kDense, "--trace 2,1,4").out, Contains("D[2,1,4] of " + kDense));
  check_refused(s.gemm(kDense, "--trace 1,1"),
                "--trace 1,1: expected b,m,n with b < 3, m < 2 and n < 5, n is missing");
  s.bytes("b2.npy", {2, 4, 5}, std::vector<std::uint8_t>(40));
  check_refused(s.call("gemm --unit " + kDense + " --a a.npy --b b2.npy --out e.npy"),
                "a.npy, b2.npy: shape: expected as many products in both, found [3, 2, 4] and [2, "
                "4, 5]");
  s.floats("c1.npy", {2, 2, 5}, std::vector<float>(20));
  check_refused(s.gemm(kDense, "--c c1.npy --out e.npy"),
                "c1.npy: shape: expected [3, 2, 5] (products x M x N), found [2, 2, 5]");
  check_refused(s.call("gemm --unit " + kDense + " --a a.npy --b b0.npy --b-layout nk --out e.npy"),
                "b0.npy: shape: expected N x K, found [4, 5]");
}

TEST_CASE("gemm arrays: empty sizes", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {2, 0}, {});
  s.bytes("b.npy", {0, 3}, {});
  s.floats("c.npy", {2, 3}, {1, 2, 3, 4, 5, -0.0f});
  REQUIRE(s.gemm(kDense).code == 0);
  CHECK(s.result<float>(ArrayType::float32) == std::vector<float>(6, 0));
  REQUIRE(s.gemm(kDense, "--c c.npy --out d.npy").code == 0);
  CHECK(s.result<std::uint32_t>(ArrayType::float32)[5] == 0x80000000);
  s.bytes("a.npy", {0, 4}, {});
  s.bytes("b.npy", {4, 3}, std::vector<std::uint8_t>(12));
  REQUIRE(s.gemm(kDense).code == 0);
  CHECK(s.npy().shape == ArrayShape{0, 3});
}

TEST_CASE("gemm arrays: float16 C is widened, nothing else is taken for it", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  s.put("c.npy", ArrayType::uint16, {2, 3},
        std::vector<std::uint16_t>{0x3c00, 0x7e00, 0xfc00, 1, 0x8000, 0xc400});
  REQUIRE(s.gemm(kDense, "--c c.npy --out d.npy").code == 0);
  const auto d = s.result<std::uint32_t>(ArrayType::float32);
  CHECK(d[0] == 0x40a00000);
  CHECK(d[1] == 0x7fffffff);
  CHECK(d[2] == 0xff800000);
  CHECK(d[3] == 0x40800000);  // 2^-24 is cut beside 4
  CHECK(d[5] == 0);
  s.file("c.npy.json", R"({"numemu": "1", "format": "bfloat16", "logical_shape": [2, 3]})");
  check_refused(s.gemm(kDense, "--c c.npy --out d.npy"), "c.npy");
  std::filesystem::remove(s.path + "/c.npy.json");
  s.put("c.npy", ArrayType::float64, {2, 3}, std::vector<double>(6));
  check_refused(s.gemm(kDense, "--c c.npy --out d.npy"), "c.npy");
  s.floats("c.npy", {2, 3}, std::vector<float>(6));
  check_refused(s.gemm("nvidia.h100.wgmma.e4m3.f16", "--c c.npy --out d.npy"),
                "c.npy: dtype: expected uint16 or float16 codes of float16, found float32");
}

TEST_CASE("gemm arrays: integers", "[fast]") {
  const GemmFolder s;
  const std::string unit = "nvidia.a100.mma.s4.s32";
  s.put("a.npy", ArrayType::int8, {1, 2}, std::vector<std::int8_t>{-8, 7});
  s.bytes("b.npy", {2, 1}, {0x0f, 0x02});
  s.put("c.npy", ArrayType::int32, {1, 1}, std::vector<std::int32_t>{0x7fffffff});
  REQUIRE(s.gemm(unit).code == 0);
  CHECK(s.result<std::int32_t>(ArrayType::int32)[0] == 22);
  REQUIRE(s.gemm(unit, "--c c.npy --out d.npy").code == 0);
  CHECK(s.result<std::int32_t>(ArrayType::int32)[0] ==
        std::numeric_limits<std::int32_t>::min() + 21);
  REQUIRE(s.gemm(unit + ".satfinite", "--c c.npy --out d.npy").code == 0);
  CHECK(s.result<std::int32_t>(ArrayType::int32)[0] == 0x7fffffff);
  s.floats("c.npy", {1, 1}, {1});
  check_refused(s.gemm(unit, "--c c.npy --out d.npy"),
                "c.npy: dtype: expected int32, found float32");
  s.bytes("a.npy", {1, 2}, {3, 0x10});
  check_refused(s.gemm(unit),
                "a.npy: element 1: expected a code of int4 within 0..0xf, found 0x10");
  s.put("a.npy", ArrayType::int8, {1, 2}, std::vector<std::int8_t>{-9, 7});
  check_refused(s.gemm(unit), "a.npy: element 0: expected a code of int4 within -8..7, found -9");
  // A register of 16 bits: C and D are its codes.
  s.put("a.npy", ArrayType::uint16, {1, 2}, std::vector<std::uint16_t>{300, 0xffff});
  s.put("b.npy", ArrayType::uint16, {2, 1}, std::vector<std::uint16_t>{100, 5});
  REQUIRE(s.gemm("intel.emr.vpdpwssd.s16.s32").code == 0);
  CHECK(s.result<std::int32_t>(ArrayType::int32)[0] == 29995);
  s.put("c.npy", ArrayType::uint16, {1, 1}, std::vector<std::uint16_t>{30000});
  REQUIRE(
      s.gemm("neutral.mac.int16.wrap", "--format-a int16 --format-b int16 --c c.npy --out d.npy")
          .code == 0);
  CHECK(s.result<std::int16_t>(ArrayType::int16)[0] == -5541);
  CHECK_FALSE(std::filesystem::exists(s.path + "/d.npy.json"));
  s.put("a.npy", ArrayType::int16, {1, 2}, std::vector<std::int16_t>{300, -1});
  s.put("b.npy", ArrayType::int16, {2, 1}, std::vector<std::int16_t>{100, 5});
  s.put("c.npy", ArrayType::int16, {1, 1}, std::vector<std::int16_t>{30000});
  REQUIRE(
      s.gemm("neutral.mac.int16.wrap", "--format-a int16 --format-b int16 --c c.npy --out e.npy")
          .code == 0);
  CHECK(s.text("e.npy") == s.text("d.npy"));
  // A result goes back in as C.
  REQUIRE(
      s.gemm("neutral.mac.int16.wrap", "--format-a int16 --format-b int16 --c e.npy --out d.npy")
          .code == 0);
  // Numbers of fixed point are no int16: their codes say so beside them.
  s.put("c.npy", ArrayType::uint16, {1, 1}, std::vector<std::uint16_t>{1});
  REQUIRE(s.gemm("neutral.mac.fixed16q4", "--format-a int16 --format-b int16 --out d.npy").code ==
          0);
  CHECK(s.npy().type == ArrayType::uint16);
}

TEST_CASE("gemm arrays: block scales", "[fast]") {
  const GemmFolder s;
  s.e4m3();
  s.bytes("sa.npy", {2, 1}, {127, 128});
  s.bytes("sb.npy", {1, 3}, {127, 255, 120});
  const std::string scales = "--scale-a sa.npy --scale-b sb.npy --out d.npy";
  const Result result = s.gemm(kScaled, scales);
  REQUIRE(result.code == 0);
  CHECK(result.err == "numemu: sa.npy, sb.npy: 1 NaN scale; outputs that use them are NaN\n");
  CHECK_THAT(result.out, Contains("scales float8_e8m0fnu per 32"));
  const auto d = s.result<std::uint32_t>(ArrayType::float32);
  CHECK(d == std::vector<std::uint32_t>{0x40800000, 0x7fffffff, 0x3d000000, 0x41000000, 0x7fffffff,
                                        0x3d800000});
  pending_sidecar(s.path + "/a.npy",
                  {.numemu = "1", .written_with = {{"scales", std::string(64, '0')}}})
      .commit();
  check_refused(s.gemm(kScaled, scales), "a.npy.json: written_with: sa.npy is from another run");
  remove_sidecar(s.path + "/a.npy");
  check_refused(s.gemm(kScaled), "--scale-a: expected scales: unit " + kScaled);
  check_refused(s.gemm(kScaled, "--scale-a sa.npy --out d.npy"), "--scale-b: expected scales");
  check_refused(s.gemm(kDense, scales), "--scale-a: unit " + kDense + " has no block scales");
  s.bytes("sb.npy", {3, 1}, {127, 127, 127});
  check_refused(s.gemm(kScaled, scales),
                "sb.npy: shape: expected [1, 3] (blocks x N, one scale per 32 of K = 4), found [3, "
                "1]");
  s.bytes("sa.npy", {2, 2}, {127, 127, 127, 127});
  check_refused(s.gemm(kScaled, scales), "sa.npy: shape: expected [2, 1] (M x blocks");
  s.floats("sa.npy", {2, 1}, {1, 1});
  check_refused(s.gemm(kScaled, scales), "sa.npy: dtype: expected uint8 codes of float8_e8m0fnu");
}

TEST_CASE("gemm arrays: a sparse product is the dense one of the expanded A", "[fast]") {
  const GemmFolder s;
  // Kept: k = 1, 3 of the first group, 0, 2 of the second.
  const std::vector<std::uint8_t> kept = {0x39, 0x41, 0xb8, 0x3f};
  s.bytes("dense.npy", {1, 8}, {0, kept[0], 0, kept[1], kept[2], 0, kept[3], 0});
  s.bytes("a.npy", {1, 4}, kept);
  s.bytes("meta.npy", {1, 4}, {1, 3, 0, 2});
  s.bytes("ptx.npy", {1, 1}, {0x8d});
  std::vector<std::uint8_t> b;
  for (int i = 0; i < 24; ++i) b.push_back(static_cast<std::uint8_t>(0x30 + i * 5 % 16));
  s.bytes("b.npy", {8, 3}, b);
  REQUIRE(s.call("gemm --unit " + kDense + " --a dense.npy --b b.npy --out x.npy").code == 0);
  REQUIRE(s.gemm(kSparse, "--meta meta.npy --out d.npy").code == 0);
  CHECK(s.text("d.npy") == s.text("x.npy"));
  REQUIRE(s.gemm(kSparse, "--meta ptx.npy --meta-layout ptx --out y.npy").code == 0);
  CHECK(s.text("y.npy") == s.text("x.npy"));
}

TEST_CASE("gemm arrays: metadata that is no pattern", "[fast]") {
  const GemmFolder s;
  s.bytes("a.npy", {1, 2}, {0x38, 0x40});
  s.bytes("b.npy", {4, 1}, {0x38, 0x38, 0x38, 0x38});
  const std::string meta = "--meta meta.npy --out d.npy";
  check_refused(s.gemm(kSparse), "--meta: expected the metadata of unit " + kSparse);
  s.bytes("meta.npy", {1, 2}, {3, 1});
  check_refused(s.gemm(kSparse, meta), "meta.npy: meta row 0, position 1: index 1 after 3");
  s.bytes("meta.npy", {1, 2}, {1, 4});
  check_refused(s.gemm(kSparse, meta), "meta.npy: meta row 0, position 1: index 4 after 1");
  s.bytes("meta.npy", {1, 3}, {0, 1, 2});
  check_refused(s.gemm(kSparse, meta), "meta.npy: shape: expected [1, 2]");
  s.bytes("meta.npy", {1, 1}, {0x3d});
  check_refused(s.gemm(kSparse, "--meta-layout ptx " + meta), "meta.npy: ptx metadata row 0");
  s.bytes("meta.npy", {1, 1}, {0x05});
  check_refused(s.gemm(kSparse, "--meta-layout ptx " + meta), "meta.npy: ptx metadata row 0");
  s.floats("meta.npy", {1, 2}, {0, 1});
  check_refused(s.gemm(kSparse, meta), "meta.npy: dtype: expected uint8, found float32");
  s.bytes("meta.npy", {1, 2}, {0, 1});
  check_refused(s.gemm(kSparse, "--meta-layout intel " + meta), "unknown metadata layout 'intel'");
  s.bytes("b.npy", {2, 1}, {0x38, 0x38});
  check_refused(s.gemm(kDense, meta), "--meta: unit " + kDense + " is dense");
  check_refused(s.gemm(kDense, "--meta-layout ptx --out d.npy"),
                "--meta-layout: expected together with --meta");
  s.bytes("b.npy", {6, 1}, std::vector<std::uint8_t>(6));
  check_refused(s.gemm(kSparse, meta), "b.npy: shape: K is 6, expected a multiple of 4 (2:4)");
  s.bytes("b.npy", {8, 1}, std::vector<std::uint8_t>(8));
  check_refused(
      s.gemm(kSparse, meta),
      "a.npy, b.npy: shape: expected M x K and K x N of one K, found [1, 2] and [8, 1] (2 "
      "of 4 elements of K are kept)");
}

}  // namespace product_test
