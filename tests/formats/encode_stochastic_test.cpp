// Stochastic rounding by enumeration: all 2^n words counted against each variant's formula.
#include <boost/multiprecision/cpp_int.hpp>

#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace numemu {
namespace {

using Rational = boost::multiprecision::cpp_rational;
using Integer = boost::multiprecision::cpp_int;

Integer floor_of(const Rational& x) { return numerator(x) / denominator(x); }

Integer nearest_of(const Rational& x, bool ties_to_odd) {
  const Integer down = floor_of(x);
  const Rational rest = x - Rational(down), half(1, 2);
  const bool odd = down % 2 != 0;
  const bool up = rest > half || (rest == half && odd != ties_to_odd);
  return up ? down + 1 : down;
}

// How many of the 2^n words round up, by the definition of the P3109 report.
Integer expected_ups(const Rational& d, int n, StochasticVariant variant) {
  const Integer one = Integer(1) << n;
  const Rational scaled = d * Rational(one);
  if (variant == StochasticVariant::a) return floor_of(scaled);
  if (variant == StochasticVariant::c) return nearest_of(scaled, false);
  if (variant == StochasticVariant::odd) return nearest_of(scaled, true);
  // b: floor(d 2^(n+1)) + 2 r + 1 >= 2^(n+1), counted over r.
  const Integer t = floor_of(scaled * 2);
  Integer count = 0;
  for (Integer r = 0; r < one; ++r) count += t + 2 * r + 1 >= 2 * one ? 1 : 0;
  return count;
}

// The codes below and above |x| and the fraction between them, all in rationals.
void check_enumeration(const Format& f, double x, int n) {
  const double a = std::abs(x);
  const std::uint64_t down =
      encode(f, value_of(a), {.mode = RoundingMode::rtz}, Overflow::saturate).code;
  const Rational low(to_double(decode(f, down))), high(to_double(decode(f, down + 1)));
  const Rational d = (Rational(a) - low) / (high - low);
  for (const auto variant :
       {StochasticVariant::a, StochasticVariant::b, StochasticVariant::c, StochasticVariant::odd}) {
    const Rounding rounding{.mode = RoundingMode::sr, .variant = variant, .random_bits = n};
    Integer ups = 0;
    for (std::uint32_t r = 0; r < std::uint32_t{1} << n; ++r) {
      const Encoded result = encode(f, value_of(x), rounding, Overflow::saturate, r);
      const std::uint64_t magnitude = result.code & ~f.sign_bit();
      REQUIRE((magnitude == down || magnitude == down + 1));
      ups += magnitude == down + 1 ? 1 : 0;
    }
    INFO(f.name << " " << x << " " << to_string(rounding));
    REQUIRE(ups == expected_ups(d, n, variant));
  }
}

TEST_CASE("sr: the count of round-ups over all words equals each variant's formula", "[fast]") {
  // Ties of the cut fraction, fractions below one random step, subnormals, and the gap of formats
  // without subnormals.
  const double fractions[] = {0.0,      0.5,     0.25,       0.3,     0x1p-5, 0x1p-6 + 0x1p-7,
                              0.999999, 0x1p-20, 1 - 0x1p-9, 5.0 / 32};
  for (const char* name :
       {"float8_e4m3fn", "float4_e2m1fn", "float16", "hfp8_e4m3_nosub", "binary8p1se"}) {
    const Format& f = find_format(name);
    for (const std::uint64_t code :
         {std::uint64_t{0}, std::uint64_t{1}, f.largest_code() / 2, f.largest_code() - 1}) {
      const double low = to_double(decode(f, code)), high = to_double(decode(f, code + 1));
      for (const double fraction : fractions) {
        const double x = low + fraction * (high - low);
        if (x >= high) continue;
        for (const int n : {1, 2, 3, 5}) check_enumeration(f, x, n);
        check_enumeration(f, -x, 4);
      }
    }
  }
}

TEST_CASE("sr: 8 to 12 random bits on a few numbers", "[fast]") {
  for (const int n : {8, 10, 12}) {
    check_enumeration(find_format("float8_e4m3fn"), 1.01, n);
    check_enumeration(find_format("float16"), 3.00001, n);
    check_enumeration(find_format("float4_e2m1fn"), 4.3, n);
  }
}

TEST_CASE("sr: 32 random bits decide at the last of them", "[fast]") {
  const Format& f = find_format("float8_e4m3fn");
  const Rounding rounding{
      .mode = RoundingMode::sr, .variant = StochasticVariant::a, .random_bits = 32};
  const Value x = value_of(1 + 0x1p-35);  // d = 2^-32
  CHECK(encode(f, x, rounding, Overflow::saturate, 0xffffffff).code == 0x39);
  CHECK(encode(f, x, rounding, Overflow::saturate, 0xfffffffe).code == 0x38);
}

TEST_CASE("sr: an inexact quotient rounds up as often as the rational says", "[fast]") {
  const Format& f = find_format("float8_e4m3fn");
  const Value quotient = exact_quotient(value_of(10.0F), value_of(9.0F));  // 1 + d/8, d = 8/9
  constexpr int kBits = 10;
  Integer ups = 0;
  for (std::uint32_t r = 0; r < 1U << kBits; ++r)
    ups +=
        encode(f, quotient, parse_rounding("sr(10,a)"), Overflow::saturate, r).code == 0x39 ? 1 : 0;
  CHECK(ups == expected_ups(Rational(8, 9), kBits, StochasticVariant::a));
}

TEST_CASE("sr: values of the format never move", "[fast]") {
  const Format& f = find_format("float8_e5m2");
  for (std::uint64_t code = 0; code <= f.largest_code(); ++code) {
    const Encoded result =
        encode(f, decode(f, code), parse_rounding("sr(8)"), Overflow::saturate, 0xff);
    REQUIRE((result.code == code && result.flags == 0));
  }
}

}  // namespace
}  // namespace numemu
