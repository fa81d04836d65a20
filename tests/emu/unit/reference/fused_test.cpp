// The fused step by hand: alignment, its roundings, zeros, floors, parts, C, specials and scales.
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace fused_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kNan = 0x7fc00000;

/// float32 operands and register, `fraction_bits` below the largest exponent.
UnitDescription fused(int fraction_bits) {
  UnitDescription u = unit_of(CoreKind::fused, "float32");
  u.alignment.fraction_bits = fraction_bits;
  return u;
}

UnitDescription meeting(int fraction_bits, int sum_bits, int c_bits) {
  UnitDescription u = fused(fraction_bits);
  u.group = 2;
  u.c_entry = CEntry::after_alignment;
  u.second = {.fraction_bits = sum_bits, .c_fraction_bits = c_bits};
  return u;
}

}  // namespace

TEST_CASE("fused reference: addends are cut as the alignment rounds", "[fast]") {
  struct Case {
    RoundingMode mode;
    double addend, sum;  // beside 1, four bits kept: units of 2^-4
  };
  for (const Case& one : {Case{RoundingMode::rtz, 0x3p-5, 1 + 0x1p-4},
                          {RoundingMode::rtz, -0x3p-5, 1 - 0x1p-4},
                          {RoundingMode::rtz, 0x1p-5, 1},
                          {RoundingMode::rne, 0x1p-5, 1},
                          {RoundingMode::rne, 0x3p-5, 1 + 0x2p-4},
                          {RoundingMode::rne, -0x3p-5, 1 - 0x2p-4},
                          {RoundingMode::rne, 0x3p-6, 1 + 0x1p-4},
                          {RoundingMode::rdn, 0x1p-5, 1},
                          {RoundingMode::rdn, -0x1p-40, 1 - 0x1p-4},
                          {RoundingMode::rodd, 0x1p-40, 1 + 0x1p-4},
                          {RoundingMode::rodd, -0x1p-5, 1 - 0x1p-4},
                          {RoundingMode::rodd, 0x3p-5, 1 + 0x1p-4},
                          {RoundingMode::rodd, 0x5p-5, 1 + 0x3p-4}}) {
    UnitDescription u = fused(4);
    u.alignment.rounding = one.mode;
    INFO(static_cast<int>(one.mode) << " " << one.addend);
    CHECK(products_of(u, {1, one.addend}).number() == one.sum);
    CHECK(products_of(u, {one.addend, 1}).number() == one.sum);
    CHECK(products_of(u, {1}, one.addend).number() == one.sum);
  }
}

TEST_CASE("fused reference: a product aligns with its unnormalised exponent", "[fast]") {
  // 1.5 x 1.5 = 2.25 counts with exponent 0: units of 1, so that 1 beside it stays.
  DotCase dot{fused(0), codes_of(*fused(0).a, {1.5, 1}), codes_of(*fused(0).a, {1.5, 1})};
  CHECK(dot.number() == 3);
  // A subnormal counts with the smallest exponent: 2^-24 x 2^15 with 1, not with -9.
  UnitDescription half = unit_of(CoreKind::fused, "float16");
  half.alignment.fraction_bits = 4;
  dot = {half, codes_of(*half.a, {0x1p-24, 0x1p-4}), codes_of(*half.a, {0x1p15, 1})};
  CHECK(dot.number() == 0);
  dot.a[0] = code_of_number(*half.a, 0x1p-14);
  dot.b[0] = code_of_number(*half.a, 0x1p5);
  CHECK(dot.number() == 0x1p-4);
}

TEST_CASE("fused reference: without subnormals field 0 is a binade like the others", "[fast]") {
  UnitDescription u = fused(4);
  u.a = u.b = &find_format("hfp8_e4m3_nosub");  // smallest exponent -11, not -10
  // 1.5 x 2^-11 with exponent -11: beside it 2^-15 stays.
  DotCase dot{u, codes_of(*u.a, {0x1.8p-11, 0x1p-8}), codes_of(*u.a, {1, 0x1p-7})};
  CHECK(dot.number() == 0x1.8p-11 + 0x1p-15);
}

TEST_CASE("fused reference: what zeros and the floor do to the alignment", "[fast]") {
  UnitDescription u = fused(8);
  const auto zero_beside = [&](double small) {
    return DotCase{u, codes_of(*u.a, {0, small}), codes_of(*u.a, {0x1p120, 1})}.number();
  };
  CHECK(zero_beside(0x1p-20) == 0);  // -126 + 120 = -6: units of 2^-14
  CHECK(zero_beside(0x1p-14) == 0x1p-14);
  u.alignment.zero_exponent = -130;
  CHECK(zero_beside(0x1p-18) == 0x1p-18);
  u.alignment.zero_exponent.reset();
  CHECK(zero_beside(0x1p-20) == 0x1p-20);

  const auto tiny = [&] {
    return DotCase{u, codes_of(*u.a, {0x1p-70}), codes_of(*u.a, {0x1p-70})}.number();
  };
  CHECK(tiny() == 0);  // floor -126: units of 2^-134
  u.alignment.floor = -131;
  CHECK(tiny() == 0);
  u.alignment.floor = -132;
  CHECK(tiny() == 0x1p-140);
  u.alignment.floor.reset();
  CHECK(tiny() == 0x1p-140);
  u.alignment.zero_exponent = -126;  // C, a zero, is an addend, too
  CHECK(tiny() == 0);
  u.alignment.zero_c_counts = false;
  CHECK(tiny() == 0x1p-140);
  CHECK(zero_beside(0x1p-20) == 0);
}

TEST_CASE("fused reference: two parts align apart and are cut downwards", "[fast]") {
  UnitDescription u = meeting(4, 31, 24);
  CHECK(products_of(u, {1, -0x1p-5}).number() == 1);
  CHECK(products_of(u, {1, 0x1p-5}).number() == 1);
  u.alignment.parts = 2;
  CHECK(products_of(u, {1, -0x1p-5}).number() == 1 - 0x1p-4);
  CHECK(products_of(u, {-0x1p-5, 1}).number() == 1 - 0x1p-4);
  CHECK(products_of(u, {1, 0x1p-5}).number() == 1);
  // Within a part each product is still cut toward zero: k = 0 and 2 are one part.
  u.group = 4;
  CHECK(products_of(u, {1, 0, -0x1p-5, 0}).number() == 1);
  CHECK(products_of(u, {1, -0x1p-5, 0, 0}).number() == 1 - 0x1p-4);
}

TEST_CASE("fused reference: where C meets the sum of the products", "[fast]") {
  CHECK(products_of(meeting(4, 4, 4), {1, 0}, -0x1p-5).number() == 1 - 0x1p-4);
  CHECK(products_of(meeting(4, 4, 5), {1, 0}, -0x1p-5).number() == 1 - 0x1p-5);
  CHECK(products_of(meeting(4, 4, 4), {1.5, 0}, 16).number() == 17);
  CHECK(products_of(meeting(4, 4, 4), {-1.5, 0}, 16).number() == 14);
  CHECK(products_of(meeting(4, 5, 4), {-1.5, 0}, 16).number() == 14.5);
  UnitDescription dropping = meeting(4, 4, 4);
  dropping.second.c_dropped = 3;
  CHECK(products_of(dropping, {1, 0}, -0x1p-5).number() == 1);
  CHECK(products_of(dropping, {1, 0}, -0x1p-4).number() == 1);
  CHECK(products_of(dropping, {1, 0}, -0x1p-3).number() == 1 - 0x1p-3);

  UnitDescription u = fused(4);
  CHECK(products_of(u, {1}, 1024).number() == 1024);  // one more term of the step
  u.c_entry = CEntry::after_rounding;
  u.accumulator.rounding.mode = RoundingMode::rtz;
  CHECK(products_of(u, {1}, 1024).number() == 1025);
  CHECK(products_of(u, {3}, 0x1p24).number() == 0x1p24 + 4);  // c_rounding rne, a tie to even
  u.c_rounding.mode = RoundingMode::rtz;
  CHECK(products_of(u, {3}, 0x1p24).number() == 0x1p24 + 2);
}

TEST_CASE("fused reference: steps of k mod 4 in {0, 1} come before the rest", "[fast]") {
  UnitDescription u = fused(2);
  u.k = 8;
  u.group = 4;
  const std::vector<double> products = {1, 1, 8, 0, 1, 1, 0, 0};
  CHECK(products_of(u, products).number() == 8);
  u.order = StepOrder::pairs_mod4;
  CHECK(products_of(u, products).number() == 12);
}

TEST_CASE("fused reference: the register is rounded once a step and keeps its bits", "[fast]") {
  UnitDescription u = fused(30);
  u.group = 2;
  u.accumulator.format = &find_format("e8m2");
  u.c = u.d = &find_format("float32");
  u.accumulator.rounding.mode = RoundingMode::rtz;
  CHECK(products_of(u, {1, 0x1p-3}).number() == 1);
  CHECK(products_of(u, {1, 0x1p-3, 0x1p-3, 0}).number() == 1);
  u.group = 4;
  CHECK(products_of(u, {1, 0x1p-3, 0x1p-3, 0}).number() == 1.25);
}

TEST_CASE("fused reference: infinities, NaN and products beyond float32", "[fast]") {
  const UnitDescription u = fused(24);
  CHECK(products_of(u, {kInfinity, 1}).number() == kInfinity);
  CHECK(products_of(u, {1}, -kInfinity).number() == -kInfinity);
  CHECK(products_of(u, {kInfinity, -kInfinity}).code() == kNan);
  CHECK(products_of(u, {kInfinity}, -kInfinity).code() == kNan);
  CHECK(DotCase{u, codes_of(*u.a, {0}), codes_of(*u.a, {kInfinity})}.code() == kNan);
  CHECK(products_of(u, {1, 2}, std::numeric_limits<double>::quiet_NaN()).code() == kNan);

  DotCase beyond{u, codes_of(*u.a, {0x1p100, -0x1p100}), codes_of(*u.a, {0x1p28, 0x1p28})};
  CHECK(beyond.code() == 0);
  beyond.unit.products_overflow = true;
  CHECK(beyond.code() == kNan);
  beyond.a[1] = 0;
  CHECK(beyond.number() == kInfinity);
  beyond.c = code_of_number(*u.a, -0x1p127);
  CHECK(beyond.number() == kInfinity);
  beyond.b[0] = code_of_number(*u.a, 0x1p27);  // 2^127, the largest power that is none
  CHECK(beyond.number() == 0);

  UnitDescription cut = fused(24);
  cut.accumulator.rounding.mode = RoundingMode::rtz;
  CHECK(products_of(cut, {0x1p127, 0x1p127}).code() == 0x7f7fffff);
  cut.accumulator.overflow_to_infinity = true;
  CHECK(products_of(cut, {0x1p127, 0x1p127}).code() == 0x7f800000);
  CHECK(products_of(cut, {-0x1p127, -0x1p127}).code() == 0xff800000);
  CHECK(products_of(cut, {0x1p127, 0x1.fffffep126, 0x1p102}).code() == 0x7f7fffff);
}

TEST_CASE("fused reference: a sum of zero is +0", "[fast]") {
  const UnitDescription u = fused(4);
  CHECK(products_of(u, {-0.0, -0.0}, -0.0).code() == 0);
  CHECK(products_of(u, {1, -1}).code() == 0);
  CHECK(products_of(u, {-0x1p-140}).code() == 0);
}

TEST_CASE("fused reference: scales of powers of two join the exponents", "[fast]") {
  UnitDescription u = fused(4);
  u.scaling = {
      .point = Scaling::Point::exponents, .format = &find_format("float8_e8m0fnu"), .block = 2};
  DotCase dot = products_of(u, {1, 1, 1, 0});
  dot.scale_a = {130, 127};
  dot.scale_b = {126, 127};
  CHECK(dot.number() == 9);  // (1 + 1) 4 + 1, units of 2^-2
  dot.scale_b[0] = 134;      // exponent 10, units of 2^6
  CHECK(dot.number() == 2048);
  dot.scale_b[1] = 255;
  CHECK(dot.code() == kNan);
  // A zero operand's exponent is scaled as well: -126 + 127 + 10 = 11, units of 2^7.
  DotCase zeros = products_of(u, {0, 0, 64, 0});
  zeros.scale_a = {254, 127};
  zeros.scale_b = {137, 127};
  CHECK(zeros.number() == 0);
  zeros.unit.alignment.zero_exponent.reset();
  CHECK(zeros.number() == 64);
}

TEST_CASE("fused reference: products beyond float32 are those with their scales", "[fast]") {
  UnitDescription u = fused(24);
  u.scaling = {
      .point = Scaling::Point::exponents, .format = &find_format("float8_e8m0fnu"), .block = 1};
  DotCase dot = products_of(u, {2, -2});
  dot.scale_a = dot.scale_b = {190, 190};  // 2^63 each: products of 2^127
  dot.unit.products_overflow = true;
  CHECK(dot.number() == 0);
  dot.scale_b = {191, 191};
  CHECK(dot.code() == kNan);
  dot.unit.products_overflow = false;
  CHECK(dot.number() == 0);
}

TEST_CASE("fused reference: groups of 16 are exact and align with their scales alone", "[fast]") {
  UnitDescription u = fused(35);
  u.a = u.b = &find_format("float4_e2m1fn");
  u.k = u.group = 64;
  u.scaling = {
      .point = Scaling::Point::groups, .format = &find_format("float8_e4m3fn"), .block = 16};
  const std::vector<std::uint64_t> sixes(16, 7);
  DotCase dot{u, sixes, sixes};
  dot.scale_a = dot.scale_b = {0x3c};  // 1.5
  CHECK(dot.number() == 16 * 36 * 2.25);
  dot.scale_a = {0xbc};  // its sign is ignored
  CHECK(dot.number() == 16 * 36 * 2.25);
  dot.scale_a = {0x00};
  CHECK(dot.code() == 0);
  dot.scale_a = {0xff};
  CHECK(dot.code() == kNan);

  // Group 0: 1/4 under scales 2^16; group 1: 1/4 under 2^-12, its lowest bit 2^-14.
  std::vector<std::uint64_t> halves(32, 0);
  halves[0] = halves[16] = 1;
  dot = {u, halves, halves};
  dot.scale_a = dot.scale_b = {0x78, 0x08};
  dot.unit.alignment.fraction_bits = 30;
  dot.unit.accumulator.format = &find_format("float64");
  dot.unit.c = dot.unit.d = &find_format("float64");
  dot.unit.nan_code = dot.unit.d->nan_code();
  CHECK(dot.number() == 0x1p14 + 0x1p-14);
  dot.unit.alignment.fraction_bits = 29;
  CHECK(dot.number() == 0x1p14);
  dot.a[0] = 0;  // a sum of zero still raises the exponent
  CHECK(dot.number() == 0);
}

}  // namespace fused_test
