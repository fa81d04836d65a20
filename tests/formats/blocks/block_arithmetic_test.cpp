// Exact sums, products and quotients of values against fractions.
#include "formats/blocks/block_convert.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/formats/blocks/block_oracle.hpp"

namespace block_arithmetic_test {

using namespace numemu;
using oracle::Fraction;

namespace {

Fraction fraction_of(const Value& v) {
  if (v.kind == Class::zero) return 0;
  const Fraction magnitude = Fraction(v.significand) * oracle::power_of_two(v.exponent);
  return v.negative ? Fraction(-magnitude) : magnitude;
}

/// The value says exactly what the fraction is: equal, or sticky and within its last unit.
bool describes(const Value& v, const Fraction& exact) {
  const Fraction d = fraction_of(v), size = exact < 0 ? Fraction(-exact) : exact,
                 low = d < 0 ? Fraction(-d) : d;
  if (!v.sticky) return d == exact;
  return (exact < 0) == v.negative && low < size && size < low + oracle::power_of_two(v.exponent);
}

/// Random float32 numbers: any exponent, often few bits, often near each other.
float number(std::uint64_t i) {
  const RandomSource random{.seed = 5};
  std::uint32_t bits = random.bits(3 * i, 32);
  if (random.bits(3 * i + 1, 2) == 0) bits &= 0xfff00000;
  if (random.bits(3 * i + 2, 2) == 0) bits = (bits & 0x80ffffff) | 0x3f000000;
  const float x = std::bit_cast<float>(bits);
  return std::isfinite(x) ? x : 1.5f;
}

}  // namespace

TEST_CASE("sums and products are exact up to a sticky bit", "[fast]") {
  int sticky = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const float a = number(2 * i), b = number(2 * i + 1);
    const Value sum = exact_sum(value_of(a), value_of(b));
    sticky += sum.sticky;
    CAPTURE(a, b);
    REQUIRE(describes(sum, oracle::fraction(a) + oracle::fraction(b)));
    const Value product = exact_product(value_of(a), value_of(b));
    REQUIRE(describes(product, oracle::fraction(a) * oracle::fraction(b)));
    // As in min: a code of 8 bits times a scale, plus a minimum.
    const Value code = value_of(static_cast<float>(i % 255 + 1));
    REQUIRE(describes(exact_sum(exact_product(code, value_of(a)), value_of(b)),
                      Fraction(i % 255 + 1) * oracle::fraction(a) + oracle::fraction(b)));
  }
  CHECK(sticky > 1000);
}

TEST_CASE("the quotient of a difference keeps 60 bits", "[fast]") {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const float a = number(3 * i), b = number(3 * i + 1), s = std::fabs(number(3 * i + 2));
    if (s == 0) continue;
    CAPTURE(a, b, s);
    const Value q = quotient_of_difference(value_of(a), value_of(b), value_of(s));
    REQUIRE(describes(q, (oracle::fraction(a) - oracle::fraction(b)) / oracle::fraction(s)));
    if (q.sticky) REQUIRE(std::bit_width(q.significand) >= 60);
  }
}

TEST_CASE("special values follow IEEE 754", "[fast]") {
  const Value zero{}, one = value_of(1.0f), infinity = value_of(HUGE_VALF),
                      minus = value_of(-HUGE_VALF), nan = value_of(std::nanf(""));
  CHECK(exact_product(zero, infinity).kind == Class::nan);
  CHECK(exact_product(nan, zero).kind == Class::nan);
  CHECK(exact_product(one, minus).kind == Class::infinite);
  CHECK(exact_product(one, minus).negative);
  CHECK(exact_product(value_of(-0.0f), one).negative);
  CHECK(exact_sum(infinity, minus).kind == Class::nan);
  CHECK(exact_sum(one, nan).kind == Class::nan);
  CHECK(exact_sum(one, minus).kind == Class::infinite);
  CHECK(exact_sum(one, minus).negative);
  CHECK(exact_sum(one, value_of(-1.0f)).kind == Class::zero);
  CHECK_FALSE(exact_sum(value_of(-1.0f), one).negative);
  CHECK(exact_sum(value_of(-0.0f), value_of(-0.0f)).negative);
  CHECK(quotient_of_difference(infinity, one, one).kind == Class::infinite);
  CHECK(quotient_of_difference(one, one, one).kind == Class::zero);
}

}  // namespace block_arithmetic_test
