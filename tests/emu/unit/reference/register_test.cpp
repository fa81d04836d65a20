// Registers: roundings, overflow, tiny results, two's complement, and how elements are stored.
#include "emu/unit/reference/register.hpp"

#include <limits>

#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace register_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

Register floating(const char* format, RoundingMode mode = RoundingMode::rne) {
  Register r;
  r.format = &find_format(format);
  r.rounding.mode = mode;
  return r;
}

Register twos(int bits, int fraction, IntegerOverflow overflow,
              RoundingMode mode = RoundingMode::rne) {
  Register r;
  r.bits = bits;
  r.fraction = fraction;
  r.integer = overflow;
  r.rounding.mode = mode;
  return r;
}

double held(const Register& r, double x) { return to_double(round_to(r, value_of(x))); }

/// significand * 2^exponent.
Value scaled(std::int64_t significand, int exponent) {
  return {Class::finite, significand < 0, false, exponent,
          static_cast<std::uint64_t>(significand < 0 ? -significand : significand)};
}

constexpr auto kWrap = IntegerOverflow::wrap;
constexpr auto kSaturate = IntegerOverflow::saturate_once;

}  // namespace

TEST_CASE("register: overflow to infinity begins beyond the largest value's binade", "[fast]") {
  Register r = floating("float16", RoundingMode::rtz);
  CHECK(held(r, 65535) == 65504);
  CHECK(held(r, 1e9) == 65504);
  r.overflow_to_infinity = true;
  CHECK(held(r, 65535) == 65504);
  CHECK(round_to(r, value_of(65536.0)).kind == Class::infinite);
  CHECK(round_to(r, value_of(-65536.0)).negative);
  r.rounding.mode = RoundingMode::rodd;
  CHECK(held(r, 65535) == 65504);
  CHECK(round_to(r, value_of(65536.0)).kind == Class::infinite);
  r = floating("float16");
  CHECK(held(r, 65519) == 65504);
  CHECK(round_to(r, value_of(65520.0)).kind == Class::infinite);
  r.overflow = Overflow::saturate;
  CHECK(held(r, 65520) == 65504);
  CHECK(held(r, std::numeric_limits<double>::infinity()) == 65504);
}

TEST_CASE("register: results are tiny after rounding, or before", "[fast]") {
  const Register r = floating("float32");
  Subnormals flush{.flush_results = true};
  const auto code = [&](std::int64_t significand, int exponent) {
    return code_of(r.format, r, round_to(r, flush, scaled(significand, exponent)), 0);
  };
  CHECK(code((1 << 25) - 1, -151) == 0x00800000);   // 2^-126 - 2^-151 stays
  CHECK(code((1 << 24) - 1, -150) == 0);            // 2^-126 - 2^-150 does not
  CHECK(code(-(1 << 24) + 1, -150) == 0x80000000);  // and keeps its sign
  CHECK(code((std::int64_t{1} << 40) - 1, -166) == 0x00800000);
  CHECK(code(1, -126) == 0x00800000);
  CHECK(code(1, -300) == 0);
  flush.tiny_before_rounding = true;
  CHECK(code((1 << 25) - 1, -151) == 0);
  CHECK(code(1, -126) == 0x00800000);
  flush = {};
  CHECK(code((1 << 24) - 1, -150) == 0x00800000);
  CHECK(code((1 << 23) - 1, -149) == 0x007fffff);
}

TEST_CASE("register: flushed operands", "[fast]") {
  const Format& half = find_format("float16");
  const Value small = value_of(-0x1p-15), normal = value_of(-0x1p-14);
  CHECK(flushed(half, small, false).kind == Class::zero);
  CHECK(flushed(half, small, false).negative);
  CHECK_FALSE(flushed(half, small, true).negative);
  CHECK(flushed(half, normal, true).kind == Class::finite);
  CHECK_FALSE(flushed(half, {.negative = true}, true).negative);
  CHECK(flushed(half, {.negative = true}, false).negative);
  CHECK(flushed(half, {.kind = Class::infinite}, true).kind == Class::infinite);
  CHECK(flushed(half, {.kind = Class::nan}, true).kind == Class::nan);
  // One more binade of normal numbers where there are no subnormal ones.
  CHECK(flushed(find_format("hfp8_e4m3_nosub"), value_of(0x1.8p-11), true).kind == Class::finite);
}

TEST_CASE("register: two's complement wraps modulo 2^bits", "[fast]") {
  const Register r = twos(8, 0, kWrap);
  CHECK(held(r, 127) == 127);
  CHECK(held(r, 128) == -128);
  CHECK(held(r, -129) == 127);
  CHECK(held(r, 256 * 5 + 3) == 3);
  CHECK(held(r, 127.5) == -128);  // rounded first
  CHECK(held(r, std::numeric_limits<double>::infinity()) == 0);
  CHECK(round_to(r, {.kind = Class::nan}).kind == Class::zero);
  CHECK(to_double(round_to(twos(32, 0, kWrap), scaled(0x300000005, 1))) == 10);
  CHECK(to_double(round_to(twos(32, 4, kWrap), scaled(5, 40))) == 0);
}

TEST_CASE("register: two's complement saturates to its ends", "[fast]") {
  const Register r = twos(8, 0, kSaturate);
  CHECK(held(r, 127.4) == 127);
  CHECK(held(r, 1e30) == 127);
  CHECK(held(r, -128) == -128);
  CHECK(held(r, -1e30) == -128);
  CHECK(held(r, -std::numeric_limits<double>::infinity()) == -128);
  CHECK(to_double(round_to(twos(32, 0, kSaturate), scaled(1, 31))) == 0x7fffffff);
}

TEST_CASE("register: fixed point rounds at its last bit", "[fast]") {
  struct Case {
    RoundingMode mode;
    double x, held;
  };
  for (const Case& one : {Case{RoundingMode::rne, 0.125, 0},  // half a unit of 1/4
                          {RoundingMode::rne, 0.375, 0.5},
                          {RoundingMode::rna, 0.125, 0.25},
                          {RoundingMode::rna, -0.125, -0.25},
                          {RoundingMode::rtz, -0.24, 0},
                          {RoundingMode::rup, 0.01, 0.25},
                          {RoundingMode::rup, -0.24, 0},
                          {RoundingMode::rdn, -0.01, -0.25},
                          {RoundingMode::rodd, 0.01, 0.25},
                          {RoundingMode::rodd, 0.51, 0.75}}) {
    INFO(static_cast<int>(one.mode) << " " << one.x);
    CHECK(held(twos(16, 2, kSaturate, one.mode), one.x) == one.held);
    CHECK(held(twos(16, 2, kWrap, one.mode), one.x) == one.held);
  }
}

TEST_CASE("register: elements of C and D in their containers", "[fast]") {
  const Register r8 = twos(8, 0, kWrap), r12 = twos(12, 4, kWrap), r24 = twos(24, 0, kWrap);
  CHECK(bytes_of(nullptr, r8) == 1);
  CHECK(bytes_of(nullptr, r12) == 2);
  CHECK(bytes_of(nullptr, r24) == 4);
  CHECK(bytes_of(&find_format("tfloat32"), r8) == 4);
  CHECK(bytes_of(&find_format("float64"), r8) == 8);
  CHECK(bytes_of(&find_format("bfloat16"), r8) == 2);

  const std::uint16_t halves[] = {0, 0x0fff, 0x07ff};
  CHECK(to_double(read_element(nullptr, r12, halves, 1)) == -1.0 / 16);
  CHECK(to_double(read_element(nullptr, r12, halves, 2)) == 2047.0 / 16);
  const std::int32_t words[] = {-7, 7};
  CHECK(to_double(read_element(nullptr, r24, words, 0)) == -7);
  const float numbers[] = {1, -1.5f};
  CHECK(to_double(read_element(&find_format("tfloat32"), r8, numbers, 1)) == -1.5);

  std::int32_t word = 0;
  store_code(nullptr, r24, 0xfffff9, &word, 0);  // sign-extended
  CHECK(word == -7);
  std::uint16_t half = 0;
  store_code(nullptr, r12, code_of(nullptr, r12, value_of(-1.0 / 16), 0), &half, 0);
  CHECK(half == 0x0fff);
  float number = 0;
  store_code(&find_format("tfloat32"), r8, 0x40000000 >> 13, &number, 0);
  CHECK(number == 2.0f);
}

TEST_CASE("register: short ends hold their neighbours, where the register saturates", "[fast]") {
  const ShortEnds top{.lowest = false, .largest = true}, both{.lowest = true, .largest = true};
  Register r{.bits = 8, .fraction = 1, .integer = IntegerOverflow::saturate_each};
  const auto within_of = [&](const ShortEnds* ends, double x) {
    return to_double(within(r, ends, round_to(r, value_of(x))));
  };
  CHECK(within_of(nullptr, 1000) == 63.5);
  CHECK(within_of(&top, 1000) == 63);
  CHECK(within_of(&top, 62.5) == 62.5);
  CHECK(within_of(&top, -1000) == -64);
  CHECK(within_of(&both, -1000) == -63.5);
  r.integer = IntegerOverflow::wrap;
  CHECK(within_of(&both, 63.5) == 63.5);
  r = {.format = &find_format("float8_e4m3fn"), .overflow = Overflow::saturate};
  CHECK(within_of(&top, 1000) == 416);
  CHECK(within_of(&top, -1000) == -448);
  CHECK(within_of(&both, -1000) == -416);
  CHECK(within_of(&both, 410) == 416);
}

TEST_CASE("register: an x86 NaN keeps sign and payload and is quieted", "[fast]") {
  const Format &f32 = find_format("float32"), &bf16 = find_format("bfloat16");
  constexpr std::uint64_t kDefault = 0xffc00000;
  CHECK(x86_nan(f32, decode(bf16, 0x7f81), kDefault) == 0x7fc10000);
  CHECK(x86_nan(f32, decode(bf16, 0xffc5), kDefault) == 0xffc50000);
  CHECK(x86_nan(f32, decode(f32, 0x7f800001), kDefault) == 0x7fc00001);
  CHECK(x86_nan(f32, {.kind = Class::nan}, kDefault) == kDefault);
  CHECK(x86_nan(find_format("float16"), decode(find_format("float16"), 0xfc03), 0xfe00) == 0xfe03);
  CHECK(code_of(&f32, {}, {.kind = Class::nan}, 0x7fffffff) == 0x7fffffff);
}

}  // namespace register_test
