// Scale rule absmax for block formats: the exact quotient rounded once to the scale format.
#include "formats/blocks/block_convert.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace absmax_test {

using namespace numemu;
using namespace numemu::test;

namespace {

float absmax(const char* format, const std::vector<float>& x, RoundingMode mode = RoundingMode::rup,
             float tensor_scale = 1) {
  const BlockFormat& f = find_block_format(format);
  Conversion conversion;
  conversion.format = f.element;
  return find_scale_rule("absmax", f)
      .scale({x.data(), static_cast<std::int64_t>(x.size()), &conversion, &f, tensor_scale, mode});
}

}  // namespace

TEST_CASE("absmax is the exact quotient rounded up or to nearest in the scale format", "[fast]") {
  const RandomSource random{.seed = 21};
  struct Case {
    const char* format;
    int reach;
  };
  for (const Case& one : {Case{"group(int4,32,float16)", 7}, Case{"group(uint4,32,e5m4)", 15},
                          Case{"group(int8,32,e4m3fn)", 127}, Case{"group(e4m3fn,32,e6m3)", 448}}) {
    const BlockFormat& f = find_block_format(one.format);
    const auto list = oracle::elements_of(*f.scale, 0, true);
    for (std::uint64_t i = 0; i < 300; ++i) {
      const auto amax =
          static_cast<float>(std::ldexp(1 + random.uniform(i), static_cast<int>(i % 30) - 15));
      for (const RoundingMode mode : {RoundingMode::rup, RoundingMode::rne}) {
        const oracle::Element want =
            oracle::rounded(list, oracle::fraction(amax) / one.reach, mode);
        const float got = absmax(one.format, {amax / 2, -amax, 0}, mode);
        CAPTURE(one.format, amax, static_cast<int>(mode));
        const oracle::Fraction expected =
            want.value == 0 ? oracle::fraction(smallest_value(*f.scale)) : want.value;
        REQUIRE(oracle::fraction(got) == expected);
      }
    }
  }
}

TEST_CASE("absmax of a float32 block scale is the real rule", "[fast]") {
  const RandomSource random{.seed = 22};
  for (const char* name : {"int4", "int8", "float8_e4m3fn", "float4_e2m1fn", "float16"}) {
    Conversion conversion;
    conversion.format = &find_format(name);
    const std::string block = "group(" + std::string(name) + ",tensor,float32)";
    for (std::uint64_t i = 0; i < 500; ++i) {
      const auto amax =
          static_cast<float>(std::ldexp(1 + random.uniform(i), static_cast<int>(i % 270) - 148));
      CHECK(absmax(block.c_str(), {amax}) == absmax_scale(amax, conversion));
    }
    CHECK(absmax(block.c_str(), {}) == 1);
    CHECK(absmax(block.c_str(), {0, -0.0f}) == 1);
  }
}

TEST_CASE("absmax of affine groups covers the range", "[fast]") {
  CHECK(absmax("group(uint4,32,float32,zp)", {-5, 10}) == 1);
  CHECK(absmax("group(uint4,32,float32,zp)", {5, 15}) == 1);  // zero belongs to the range
  CHECK(absmax("group(uint4,32,float32,zp)", {-30, -5}) == 2);
  CHECK(absmax("group(int8,32,float32,zp)", {-100, 155}) == 1);
  CHECK(absmax("group(uint4,32,float32,min)", {5, 20}) == 1);  // here it does not
  CHECK(absmax("group(uint4,32,float32,min)", {7, 7, 7}) == 1);
  CHECK(absmax("group(int4,32,float32,min)", {1, 8}) == 1);  // codes 0..7
  CHECK(absmax("group(uint4,32,float32,zp)", {0, 0}) == 1);
  // An exact difference of 278 bits, rounded up once.
  CHECK(absmax("group(uint4,32,float32,min)", {-0x1p-149f, 15}) == std::nextafter(1.0f, 2.0f));
  CHECK(absmax("group(uint4,32,float32,min)", {-0x1p-149f, 15}, RoundingMode::rne) == 1);
  CHECK(absmax("group(uint4,32,float32,min)", {0x1p-149f, 15}) == 1);
}

TEST_CASE("absmax of NVFP4 divides by the tensor scale exactly", "[fast]") {
  const auto list = oracle::elements_of(find_format("float8_e4m3fn"), 0, true);
  const RandomSource random{.seed = 23};
  for (std::uint64_t i = 0; i < 400; ++i) {
    const float t = static_cast<float>(random.uniform(2 * i)) + 1e-6f;
    const float amax = t * static_cast<float>(random.uniform(2 * i + 1) * 2800);
    if (amax == 0) continue;
    const oracle::Element want = oracle::rounded(
        list, oracle::fraction(amax) / (6 * oracle::fraction(t)), RoundingMode::rne);
    CAPTURE(t, amax);
    CHECK(oracle::fraction(absmax("nvfp4", {amax}, RoundingMode::rne, t)) ==
          (want.value == 0 ? oracle::power_of_two(-9) : want.value));
  }
  CHECK(absmax("nvfp4", {0, 0}, RoundingMode::rne) == 0);
  CHECK(absmax("nvfp4", {1e-30f}, RoundingMode::rne) == 0x1p-9f);
  CHECK(absmax("nvfp4", {1e30f}, RoundingMode::rne) == 448);
  // Half way between 1 and 1.125, in quotients: to the even code of 1.
  CHECK(absmax("nvfp4", {6 * 1.0625f}, RoundingMode::rne) == 1);
  CHECK(absmax("nvfp4", {std::nextafter(6 * 1.0625f, 7.0f)}, RoundingMode::rne) == 1.125f);
}

TEST_CASE("absmax saturates and never vanishes", "[fast]") {
  CHECK(absmax("group(int4,32,float16)", {3e38f}) == 65504);
  CHECK(absmax("group(int4,32,float16)", {1e-40f}) == 0x1p-24f);
  CHECK(absmax("group(int4,32,float16)", {1e-40f}, RoundingMode::rne) == 0x1p-24f);
}

}  // namespace absmax_test
