// Codes to integers and back, and float64 chains against the host's fused multiply-add.
#include "tests/oracle/cuda/replay/number.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/example.hpp"
#include "tests/oracle/cuda/replay/wide.hpp"

namespace numemu::oracle::recording::replay {
namespace {

double value_of(Element element, std::uint64_t code) {
  const Number n = decode(info(element), code);
  const double magnitude =
      std::ldexp(static_cast<double>(n.significand), n.exponent - info(element).mantissa_bits);
  return n.negative ? -magnitude : magnitude;
}

Writing plain(Element element, Rounding rounding) {
  return {element, rounding, info(element).mantissa_bits, false, true, false};
}

std::uint64_t bits_of(double x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

}  // namespace

TEST_CASE("codes decode to the values of their standards", "[fast]") {
  CHECK(value_of(Element::f16, 0x0001) == std::ldexp(1.0, -24));
  CHECK(value_of(Element::f16, 0xfbff) == -65504.0);
  CHECK(value_of(Element::bf16, 0x7f7f) == std::ldexp(255.0, 120));
  CHECK(value_of(Element::e4m3, 0x7e) == 448.0);
  CHECK(value_of(Element::e4m3, 0x01) == std::ldexp(1.0, -9));
  CHECK(value_of(Element::e5m2, 0x7b) == 57344.0);
  CHECK(value_of(Element::e3m2, 0x1f) == 28.0);
  CHECK(value_of(Element::e3m2, 0x21) == -0.0625);
  CHECK(value_of(Element::e2m3, 0x1f) == 7.5);
  CHECK(value_of(Element::e2m3, 0x01) == 0.125);
  CHECK(value_of(Element::e2m1, 0xf) == -6.0);
  CHECK(value_of(Element::e2m1, 0x1) == 0.5);
  CHECK(value_of(Element::ue8m0, 0x00) == std::ldexp(1.0, -127));
  CHECK(value_of(Element::ue4m3, 0xb8) == 1.0);
  CHECK(value_of(Element::tf32, 0x3f801fff) == 1.0);
  CHECK(value_of(Element::tf32, 0x3f803fff) == 1.0 + std::ldexp(1.0, -10));
  CHECK(decode(info(Element::e4m3), 0x7f).kind == Class::nan);
  CHECK(decode(info(Element::e5m2), 0xfc).kind == Class::infinite);
  CHECK(decode(info(Element::e2m1), 0x7).kind == Class::finite);
  CHECK(decode(info(Element::ue8m0), 0xff).kind == Class::nan);
  CHECK(decode_integer(info(Element::s4), 0xf) == -1);
  CHECK(decode_integer(info(Element::u4), 0xf) == 15);
  CHECK(decode_integer(info(Element::s8), 0x80) == -128);
  CHECK(decode_integer(info(Element::s32), 0x80000000) == INT32_MIN);
}

TEST_CASE("every finite code is written as it was read", "[fast]") {
  for (const Element e : {Element::f16, Element::bf16, Element::e5m2}) {
    for (std::uint64_t code = 0; code >> info(e).bits == 0; ++code) {
      const Number n = decode(info(e), code);
      if (n.kind != Class::finite) continue;
      const int exponent = n.exponent - info(e).mantissa_bits;
      if (encode(plain(e, Rounding::nearest_even), n.negative, n.significand, exponent) != code ||
          encode(plain(e, Rounding::toward_zero), n.negative, n.significand, exponent) != code)
        FAIL(info(e).name << " " << code);
    }
  }
}

TEST_CASE("rounding to float32 is the host's", "[fast]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t magnitude = random() >> (random() % 64);
    const int exponent = static_cast<int>(random() % 330) - 240;
    // long double holds 64 bits and these exponents exactly.
    const long double exact = std::ldexp(static_cast<long double>(magnitude), exponent);
    const auto nearest = static_cast<float>(exact);
    auto cut = nearest;
    if (static_cast<long double>(cut) > exact && !std::isinf(cut)) cut = std::nextafter(cut, 0.0F);
    std::uint32_t expected = 0, expected_cut = 0;
    std::memcpy(&expected, &nearest, 4);
    std::memcpy(&expected_cut, &cut, 4);
    if (encode(plain(Element::f32, Rounding::nearest_even), false, magnitude, exponent) != expected)
      FAIL("nearest " << magnitude << " " << exponent);
    if (std::isinf(nearest)) continue;
    if (encode(plain(Element::f32, Rounding::toward_zero), false, magnitude, exponent) !=
        expected_cut)
      FAIL("toward zero " << magnitude << " " << exponent);
  }
}

TEST_CASE("the ends of a result", "[fast]") {
  Writing to = plain(Element::f32, Rounding::toward_zero);
  CHECK(encode(to, false, 0xffffff, 104) == 0x7f7fffff);
  CHECK(encode(to, false, 0x1ffffff, 103) == 0x7f7fffff);
  CHECK(encode(to, true, 1, 128) == 0xff800000);
  CHECK(encode(to, true, 1, -150) == 0x80000000);
  to.keeps_zero_sign = false;
  CHECK(encode(to, true, 1, -150) == 0);
  to.largest_finite = true;
  CHECK(encode(to, true, 1, 128) == 0xff7fffff);
  to.kept = 13;
  CHECK(encode(to, false, 1, 4000) == 0x7f7ffc00);
  CHECK(encode(to, false, 0xffffff, 0) == 0x4b7ffc00);
  CHECK(encode(to, false, 1, -139) == 0x400);
  CHECK(encode(to, false, 1, -140) == 0);
  to.flushes = true;
  CHECK(encode(to, true, 1, -139) == 0x80000000);
  CHECK(encode(to, true, 1, -126) == 0x80800000);
  const Writing half = plain(Element::f16, Rounding::nearest_even);
  CHECK(encode(half, false, 65519, 0) == 0x7bff);
  CHECK(encode(half, false, 65520, 0) == 0x7c00);
  CHECK(encode(half, true, 1, -25) == 0x8000);
  CHECK(encode(half, false, 3, -26) == 0x0001);
}

TEST_CASE("a wide sum carries and borrows over all limbs", "[fast]") {
  WideDouble sum;
  sum.add(false, 0, 1, 2000);
  sum.add(true, 0, 1, -2148);
  CHECK(sum.top().magnitude == ~std::uint64_t{0});
  CHECK(sum.top().exponent == 1936);
  sum.add(true, 0, 1, 2000);
  CHECK(sum.top().negative);
  CHECK(sum.top().magnitude == std::uint64_t{1} << 63);
  CHECK(sum.top().exponent == -2148 - 63);
  sum.add(false, 0, 1, -2148);
  CHECK(sum.top().magnitude == 0);
}

TEST_CASE("the float64 chain is the host's fused multiply-add", "[fast]") {
  std::mt19937_64 random(2);
  std::size_t special = 0;
  for (int i = 0; i < 20000; ++i) {
    Example e("mma", "m8n8k4.f64.f64.f64.f64");
    // Near one, of any exponent, or any code at all; every third product cancels the one before it.
    const auto draw = [&] {
      const std::uint64_t code = random();
      if (i % 4 == 0) return code;
      const std::uint64_t mantissa = code & 0x800fffffffffffff;
      const std::uint64_t spread = i % 4 == 1 ? 8 : 120;
      return mantissa | (i % 4 == 3 ? code % 1100 : 1023 - spread / 2 + code % spread) << 52;
    };
    double a[4], b[4];
    for (int k = 0; k < 4; ++k) {
      std::uint64_t code_a = draw(), code_b = draw();
      std::memcpy(&a[k], &code_a, 8);
      std::memcpy(&b[k], &code_b, 8);
      if (k % 3 == 2) a[k] = -a[k - 1];
      if (k % 3 == 2) b[k] = b[k - 1];
      e.product(k, bits_of(a[k]), bits_of(b[k]));
    }
    std::uint64_t code_c = draw();
    double sum = 0;
    std::memcpy(&sum, &code_c, 8);
    e.c(code_c);
    for (int k = 0; k < 4; ++k) sum = std::fma(a[k], b[k], sum);
    const std::uint64_t answer = e.answer("H100");
    if (std::isnan(sum) ? !is_nan(Element::f64, answer) : answer != bits_of(sum))
      FAIL("dot " << i << ": " << answer << " " << bits_of(sum));
    special += std::isnan(sum) || std::isinf(sum) || std::fpclassify(sum) == FP_SUBNORMAL ? 1 : 0;
  }
  CHECK(special > 1000);
}

}  // namespace numemu::oracle::recording::replay
