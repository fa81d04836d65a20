// The exact accumulator against big integers, and its rules for NaN, infinity and signed zero.
#include "emu/unit/kulisch.hpp"

#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/oracle/dyadic.hpp"

namespace kulisch_test {

using namespace numemu;
using namespace numemu::unit;
using numemu::unit::test::Dice;
using oracle::Rational;

namespace {

Value finite(bool negative, std::uint64_t significand, int exponent) {
  return {Class::finite, negative, false, exponent, significand};
}

const Value kZero{}, kNegativeZero{.negative = true};
const Value kInfinity{.kind = Class::infinite}, kNan{.kind = Class::nan};

/// The leading 64 bits of an integer times 2^low, and whether anything lies below.
Value leading(const Rational& integer, int low) {
  const oracle::Dyadic magnitude = oracle::dyadic(abs(integer));
  const bool sticky = magnitude.sticky || static_cast<std::uint64_t>(magnitude.bits) != 0;
  return {Class::finite, integer < 0, sticky, low + static_cast<int>(magnitude.lead) - 63,
          static_cast<std::uint64_t>(magnitude.bits >> 64)};
}

void accumulate(Rational& sum, bool negative, const Rational& magnitude, int shift) {
  const Rational term = magnitude * Rational::power_of_two(shift);
  sum += negative ? -term : term;
}

void check_same(const Value& x, const Value& y) {
  CHECK(x.kind == y.kind);
  CHECK(x.negative == y.negative);
  CHECK(x.sticky == y.sticky);
  CHECK(x.exponent == y.exponent);
  CHECK(x.significand == y.significand);
}

}  // namespace

TEST_CASE("kulisch: sums of products and terms equal exact integers", "[fast]") {
  constexpr int kLow = -300, kTop = 280, kTerms = 40;
  Dice dice(7);
  Kulisch sum({kLow, kTop}, kTerms);
  for (int round = 0; round < 500; ++round) {
    sum.clear();
    Rational expected = 0;
    const int spread = static_cast<int>(dice.below(270)) + 1;
    for (int t = 0; t < kTerms; ++t) {
      const auto draw = [&](int low) {
        const std::uint64_t bits =
            (std::uint64_t{dice.bits()} << 21 ^ dice.bits()) >> dice.below(50);
        return finite(dice.below(2) != 0, bits | 1,
                      low + static_cast<int>(dice.below(spread / 2 + 1)));
      };
      const Value a = draw(-150), b = draw(-150);
      if (t % 3 == 0) {
        sum.add(a);
        accumulate(expected, a.negative, a.significand, a.exponent - kLow);
      } else {
        sum.add_product(a, b);
        accumulate(expected, a.negative != b.negative, Rational(a.significand) * b.significand,
                   a.exponent + b.exponent - kLow);
      }
    }
    if (expected == 0) continue;
    check_same(sum.sum(), leading(expected, kLow));
  }
}

TEST_CASE("kulisch: the full range survives cancellation", "[fast]") {
  const Exponents range = exponents_of(find_format("float32"));
  Kulisch sum(product_range(range, range), 3);
  const Value huge = value_of(0x1.fffffep127f), tiny = value_of(0x1p-149f);
  Value negative = huge;
  negative.negative = true;
  sum.add_product(huge, huge);
  sum.add_product(tiny, tiny);
  sum.add_product(negative, huge);
  check_same(sum.sum(), finite(false, std::uint64_t{1} << 63, -298 - 63));
  sum.clear();
  sum.add_product(huge, huge);
  sum.add_product(huge, huge);
  sum.add_product(huge, huge);
  CHECK(sum.sum().exponent + 64 == 258);
}

TEST_CASE("kulisch: NaN, infinity and signed zero", "[fast]") {
  Kulisch sum({-10, 20}, 4);
  const Value one = finite(false, 1, 0), minus_one = finite(true, 1, 0);
  Value minus_infinity = kInfinity;
  minus_infinity.negative = true;

  CHECK(sum.sum().kind == Class::zero);
  CHECK_FALSE(sum.sum().negative);

  sum.add(kNegativeZero);
  sum.add_product(kZero, minus_one);
  CHECK((sum.sum().kind == Class::zero && sum.sum().negative));
  sum.add_product(kNegativeZero, kNegativeZero);
  CHECK((sum.sum().kind == Class::zero && !sum.sum().negative));

  sum.clear();
  sum.add(kNegativeZero);
  sum.add(one);
  sum.add(minus_one);
  CHECK((sum.sum().kind == Class::zero && !sum.sum().negative));

  sum.clear();
  sum.add_product(kInfinity, minus_one);
  CHECK((sum.sum().kind == Class::infinite && sum.sum().negative));
  sum.add(minus_infinity);
  CHECK(sum.sum().kind == Class::infinite);
  sum.add(kInfinity);
  CHECK(sum.sum().kind == Class::nan);

  sum.clear();
  sum.add_product(kInfinity, kZero);
  CHECK(sum.sum().kind == Class::nan);
  sum.clear();
  sum.add_product(kNan, one);
  CHECK(sum.sum().kind == Class::nan);
  sum.clear();
  CHECK(sum.sum().kind == Class::zero);
}

}  // namespace kulisch_test
