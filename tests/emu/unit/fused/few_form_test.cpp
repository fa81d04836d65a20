// Few outputs of fused steps: the bits of the reference for all data; what is declined.
#include "emu/unit/fused/few_form.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emu/unit/fused/prepare_cases.hpp"

namespace few_form_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("few outputs: every unit, kind of data and C gives the reference's bits", "[fast]") {
  const FusedCase cases[] = {
      {"float16", "float16", "float32", 16, 16, 25},
      {"float16", "float16", "float16", 16, 16, 25},
      {"bfloat16", "bfloat16", "float32", 16, 8, 24},
      {"tfloat32", "tfloat32", "float32", 8, 8, 25},
      {"float32", "bfloat16", "float32", 0, 4, 30},
      {"float8_e4m3fn", "float8_e4m3fn", "e8m13", 32, 32, 13},
      {"float8_e5m2", "float8_e4m3fn", "float16", 32, 16, 13},
      {"float6_e3m2fn", "float4_e2m1fn", "float32", 32, 32, 25},
      {"float16", "float16", "float32", 64, 64, 40},
      {"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 32, 0},
      {"bfloat16", "bfloat16", "float32", 16, 16, 24, false, false, true},
      {"float8_e5m2", "float8_e5m2", "hfp16_e6m9", 32, 32, 13},
      {"float16", "float16", "e8m13", 16, 4, 20, false, false, false, false, true},
  };
  constexpr FusedShape kShapes[] = {{1, 1, 32}, {1, 1, 33}, {2, 2, 70}, {1, 4, 7, false, true},
                                    {3, 1, 1},  {4, 1, 64}, {1, 1, 5}};
  std::uint64_t seed = 0;
  for (const FusedCase& f : cases) {
    INFO(f.a << " x " << f.b << " -> " << f.accumulator << ", F = " << f.fraction_bits);
    AnswerCounts tally;
    for (const FusedShape& shape : kShapes) {
      for (const Elements elements : kAllElements) {
        for (const Addend addend : kAllAddends) {
          ++seed;
          FusedProduct p = make_fused(f, shape, elements, addend, seed);
          const bool half = p.unit.accumulator.format->name == "float16";
          if (seed % 3 == 1) p.unit.alignment.floor.reset();
          if (seed % 3 == 2) p.unit.alignment.floor = half ? -21 : -133;
          if (seed % 5 == 1) p.unit.alignment.zero_exponent.reset();
          if (seed % 5 > 2) p.unit.alignment.zero_c_counts = false;
          if (seed % 7 == 1) p.unit.accumulator.overflow_to_infinity = false;
          tally.count(answer_of(multiply_fused_few, p));
        }
      }
    }
    CHECK(tally.different == 0);
    // Infinity and NaN, and registers that become one, are others' to compute.
    CHECK(tally.declined < tally.equal);
  }
}

TEST_CASE("few outputs: an addend is cut one unit below the largest exponent, not earlier",
          "[fast]") {
  // 1 + 2^-F and 1 + 2^-(F + 1), which is cut; then 1 - 2^-F.
  const Format& format = find_format("float16");
  const auto code = [&](double x) {
    return static_cast<std::uint16_t>(encode(format, value_of(x), {}, Overflow::ieee).code);
  };
  for (const int exponent : {-13, -14}) {
    for (const double sign : {1.0, -1.0}) {
      FusedProduct p = make_fused({"float16", "float16", "float32", 16, 16, 13}, {1, 1, 2},
                                  Elements::gaussian, Addend::none, 1);
      p.a.halves = {code(1), code(sign)};
      p.b.halves = {code(1), code(std::ldexp(1.0, exponent))};
      std::vector<std::uint8_t> d;
      REQUIRE(by_path(multiply_fused_few, p.unit, p.gemm(d)));
      float sum = 0;
      std::memcpy(&sum, d.data(), sizeof sum);
      CHECK(sum == (exponent == -13 ? 1 + sign * 0x1p-13f : 1.0f));
    }
  }
}

TEST_CASE("few outputs: declines more of them, and what it does not know", "[fast]") {
  const auto declines = [](const FusedCase& f, const FusedShape& shape) {
    return answer_of(multiply_fused_few, make_fused(f, shape, Elements::gaussian, Addend::usual,
                                                    3)) == Answer::declined;
  };
  CHECK_FALSE(declines({}, {1, 4, 16}));
  CHECK(declines({}, {1, 5, 16}));
  CHECK(declines({"float16", "float16", "float32", 16, 16, 41}, {1, 1, 16}));
  CHECK(declines({"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 16, 25, true}, {1, 1, 32}));
  CHECK(
      declines({"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 32, 25, false, true}, {1, 1, 32}));
  CHECK(declines({"int8", "int8", "float32", 16, 16, 25}, {1, 1, 16}));
}

}  // namespace few_form_test
