// Exact values: host numbers there and back, quotients against rationals.
#include "formats/value.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/rational.hpp"

namespace numemu::value_test {
namespace {

using oracle::Rational;

Rational rational(const Value& v, std::uint64_t plus = 0) {
  return (Rational(v.significand) + plus) * Rational::power_of_two(v.exponent);
}

TEST_CASE("value: host numbers come back bit for bit", "[fast]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t bits = random();
    const double x = std::bit_cast<double>(bits);
    if (!std::isnan(x)) REQUIRE(std::bit_cast<std::uint64_t>(to_double(value_of(x))) == bits);
    const float y = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(y)) REQUIRE(static_cast<float>(to_double(value_of(y))) == y);
  }
  for (const double x :
       {0.0, -0.0, 0x1p-1074, 0x0.fffffffffffffp-1022, 0x1.fffffffffffffp1023, -HUGE_VAL})
    CHECK(std::bit_cast<std::uint64_t>(to_double(value_of(x))) == std::bit_cast<std::uint64_t>(x));
  CHECK(value_of(std::nan("")).kind == Class::nan);
  CHECK(std::isnan(to_double(value_of(std::nan("")))));
}

TEST_CASE("value: a value that no float64 holds is refused", "[fast]") {
  CHECK_THROWS_AS(to_double({Class::finite, false, false, 0, (std::uint64_t{1} << 53) + 1}), Error);
  CHECK_THROWS_AS(to_double({Class::finite, false, false, 1024, 1}), Error);
  CHECK_THROWS_AS(to_double({Class::finite, false, false, -1075, 1}), Error);
  CHECK_THROWS_AS(to_double({Class::finite, false, true, 0, 1}), Error);
  CHECK(to_double({Class::finite, false, false, -1080, 64}) == 0x1p-1074);
}

TEST_CASE("value: the exact quotient brackets the rational and has at least 40 bits", "[fast]") {
  std::mt19937_64 random(2);
  const auto any_float = [&] {
    while (true) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (std::isfinite(x) && x != 0) return x;
    }
  };
  for (int i = 0; i < 20000; ++i) {
    const Value x = value_of(any_float()), s = value_of(std::abs(any_float()));
    const Value q = exact_quotient(x, s);
    const Rational exact = rational(x) / rational(s);
    REQUIRE(q.negative == x.negative);
    REQUIRE(std::bit_width(q.significand) >= 40);
    if (q.sticky) {
      REQUIRE((rational(q) < exact && exact < rational(q, 1)));
    } else {
      REQUIRE(rational(q) == exact);
    }
    // A second division of an inexact quotient still brackets every real number it stands for.
    const Value s2 = value_of(std::abs(any_float()));
    const Value q2 = exact_quotient(q, s2);
    const Rational exact2 = exact / rational(s2);
    REQUIRE(std::bit_width(q2.significand) >= 39);
    if (q2.sticky) {
      REQUIRE((rational(q2) < exact2 && exact2 < rational(q2, 1)));
    } else {
      REQUIRE(rational(q2) == exact2);
    }
  }
  CHECK(exact_quotient(value_of(-0.0F), value_of(3.0F)).kind == Class::zero);
  CHECK(exact_quotient(value_of(HUGE_VALF), value_of(3.0F)).kind == Class::infinite);
}

}  // namespace
}  // namespace numemu::value_test
