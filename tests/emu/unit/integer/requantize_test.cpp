// Requantization against its definitions in exact fractions and in products of 128 bits.
#include "emu/unit/integer/requantize.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/rational.hpp"

namespace numemu::requantize_test {

using Catch::Contains;
using namespace unit;
using oracle::Rational;
__extension__ typedef __int128 Whole;

constexpr std::int32_t kLow = std::numeric_limits<std::int32_t>::min(),
                       kHigh = std::numeric_limits<std::int32_t>::max();

std::int32_t held(Whole x) { return static_cast<std::int32_t>(std::clamp<Whole>(x, kLow, kHigh)); }

/// floor(x / 2^e) of a number of 128 bits.
Whole floor_shift(Whole x, int e) {
  const Whole step = Whole{1} << e;
  Whole q = x / step;
  if (x % step != 0 && x < 0) --q;
  return q;
}

std::int32_t single_by_128(std::int32_t sum, FixedFactor f) {
  const int total = 31 - f.shift;
  return held(floor_shift(Whole{sum} * f.multiplier + (Whole{1} << (total - 1)), total));
}

/// The two roundings as fractions: halves of the first upward, of the second away from zero.
std::int32_t double_by_fractions(std::int32_t sum, FixedFactor f) {
  std::int64_t scaled = sum;
  if (f.shift > 0) {
    scaled = (scaled << f.shift) & 0xffffffff;
    if (scaled > kHigh) scaled -= std::int64_t{1} << 32;
  }
  const Rational half(1, 2);
  const std::int64_t high =
      held((Rational(scaled) * Rational(f.multiplier) / Rational::power_of_two(31) + half).floor());
  if (f.shift >= 0) return static_cast<std::int32_t>(high);
  const Rational quotient = Rational(high) / Rational::power_of_two(-f.shift);
  const std::int64_t magnitude = ((high < 0 ? -quotient : quotient) + half).floor();
  return static_cast<std::int32_t>(high < 0 ? -magnitude : magnitude);
}

/// RNE of a fraction.
std::int64_t nearest(const Rational& x) {
  const std::int64_t down = x.floor();
  const Rational rest = x - Rational(down);
  if (rest == Rational(1, 2)) return down + (down & 1);
  return down + (rest < Rational(1, 2) ? 0 : 1);
}

/// RNE_f32 of a fraction beyond the subnormal numbers.
Rational nearest_float(const Rational& x) {
  if (x == Rational(0)) return x;
  int e = 0;
  const Rational magnitude = abs(x);
  while (magnitude / Rational::power_of_two(e) >= Rational(1 << 24)) ++e;
  while (magnitude / Rational::power_of_two(e) < Rational(1 << 23)) --e;
  return Rational(nearest(x / Rational::power_of_two(e))) * Rational::power_of_two(e);
}

std::int32_t real_by_fractions(std::int32_t sum, float factor) {
  const Rational product = nearest_float(Rational(sum)) * Rational::of(double{factor});
  if (abs(product) > Rational::power_of_two(40)) return sum < 0 ? kLow : kHigh;
  if (abs(product) < Rational::power_of_two(-2)) return 0;
  return held(nearest(nearest_float(product)));
}

/// Sums near ends, powers of two and halves, and others.
std::vector<std::int32_t> sums(std::uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> all = {0, 1, -1, kLow, kLow + 1, kHigh, kHigh - 1};
  for (int e = 1; e < 31; ++e) {
    for (const int d : {-1, 0, 1}) {
      all.push_back((1 << e) + d);
      all.push_back(-(1 << e) + d);
    }
  }
  for (int i = 0; i < count; ++i)
    all.push_back(static_cast<std::int32_t>(random()) >> (random() % 32));
  return all;
}

std::vector<FixedFactor> factors() {
  std::vector<FixedFactor> all = {{0, 0}};
  std::mt19937 random(7);
  for (int shift = kLeastShift; shift <= kMostShift; ++shift) {
    for (const std::int32_t m : {1 << 30, (1 << 30) + 1, kHigh, 3 << 29}) all.push_back({m, shift});
    all.push_back({static_cast<std::int32_t>((random() >> 2) + (1u << 30)), shift});
  }
  return all;
}

TEST_CASE("requantize: one rounding is the product of 128 bits, shifted", "[fast]") {
  for (const FixedFactor f : factors()) {
    for (const std::int32_t sum : sums(1, 2000)) {
      const std::int32_t own = requantize_fixed(Requantization::fixed_single, sum, f);
      if (own != single_by_128(sum, f)) {
        INFO(sum << " x " << f.multiplier << " shift " << f.shift);
        REQUIRE(own == single_by_128(sum, f));
      }
    }
  }
  // Halves go upward.
  CHECK(requantize_fixed(Requantization::fixed_single, 1, {1 << 30, 0}) == 1);
  CHECK(requantize_fixed(Requantization::fixed_single, -1, {1 << 30, 0}) == 0);
}

TEST_CASE("requantize: two roundings are those of the fractions", "[fast]") {
  for (const FixedFactor f : factors()) {
    for (const std::int32_t sum : sums(2, 60)) {
      const std::int32_t own = requantize_fixed(Requantization::fixed_double, sum, f);
      if (own != double_by_fractions(sum, f)) {
        INFO(sum << " x " << f.multiplier << " shift " << f.shift);
        REQUIRE(own == double_by_fractions(sum, f));
      }
    }
  }
  // The second rounding takes halves away from zero; the first one upward.
  CHECK(requantize_fixed(Requantization::fixed_double, 2, {1 << 30, -1}) == 1);
  CHECK(requantize_fixed(Requantization::fixed_double, -2, {1 << 30, -1}) == -1);
  CHECK(requantize_fixed(Requantization::fixed_double, 1, {1 << 30, 0}) == 1);
  CHECK(requantize_fixed(Requantization::fixed_double, -1, {1 << 30, 0}) == 0);
  // Two roundings of 1/4 + 1/8: 1 x 0.75 to 1, then 1/2 to 1; one rounding gives 0.
  CHECK(requantize_fixed(Requantization::fixed_double, 1, {3 << 29, -1}) == 1);
  CHECK(requantize_fixed(Requantization::fixed_single, 1, {3 << 29, -1}) == 0);
}

TEST_CASE("requantize: a float32 factor rounds sum, product and code", "[fast]") {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const auto exponent = static_cast<std::uint32_t>(random() % 80 + 80);
    const float factor =
        std::bit_cast<float>(exponent << 23 | static_cast<std::uint32_t>(random() & 0x7fffff));
    for (const std::int32_t sum : sums(4, 40)) {
      const std::int32_t own = requantize_real(sum, factor);
      if (own != real_by_fractions(sum, factor)) {
        INFO(sum << " x " << factor);
        REQUIRE(own == real_by_fractions(sum, factor));
      }
    }
  }
  // Halves to even, and the sum is a float32 first.
  CHECK(requantize_real(1, 0.5f) == 0);
  CHECK(requantize_real(3, 0.5f) == 2);
  CHECK(requantize_real(-5, 0.5f) == -2);
  CHECK(requantize_real((1 << 24) + 1, 1) == 1 << 24);
  CHECK(requantize_real(kHigh, 0x1p-149f) == 0);
  CHECK(requantize_real(kLow, 0x1p29f) == kLow);
  CHECK(requantize_real(0, 0) == 0);
}

TEST_CASE("requantize: factors are those of QuantizeMultiplier", "[fast]") {
  CHECK(fixed_factor(1) == FixedFactor{1 << 30, 1});
  CHECK(fixed_factor(0.5) == FixedFactor{1 << 30, 0});
  CHECK(fixed_factor(0) == FixedFactor{0, 0});
  CHECK(fixed_factor(-0.0) == FixedFactor{0, 0});
  CHECK(fixed_factor(0x1p-33) == FixedFactor{0, 0});
  CHECK(fixed_factor(0x1p-32) == FixedFactor{1 << 30, -31});
  // It rounds up to the next power of two.
  CHECK(fixed_factor(1 - 0x1p-40) == FixedFactor{1 << 30, 1});
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t exponent = random() % 61 + 1023 - 31;
    const double factor = std::bit_cast<double>(exponent << 52 | random() >> 12);
    int shift = 0;
    std::int64_t m = std::llround(std::frexp(factor, &shift) * 0x1p31);
    if (m == std::int64_t{1} << 31) {
      m /= 2;
      ++shift;
    }
    REQUIRE(fixed_factor(factor) == FixedFactor{static_cast<std::int32_t>(m), shift});
  }
  for (const double bad : {-1.0, 0x1p30, 0x1p30 - 0x1p-10, std::nan(""), double{INFINITY}})
    CHECK_THROWS_WITH(fixed_factor(bad),
                      Contains("expected a factor of at least 0 and below 2^30"));
}

TEST_CASE("requantize: bias, zero point and clamp of a channel", "[fast]") {
  Epilogue e{.how = Requantization::fixed_single,
             .bias = {0, 10, kHigh},
             .zero_point = 3,
             .low = -5,
             .high = 20};
  e.set_factors(std::vector<double>{0.5, 0.25, 1});
  CHECK(e.code(8, 0) == 7);
  CHECK(e.code(8, 1) == 8);   // 4.5 upward
  CHECK(e.code(1, 2) == -5);  // the sum wraps
  CHECK(e.code(1000, 0) == 20);
  CHECK(e.code(-1000, 0) == -5);
  Epilogue real{.how = Requantization::real};
  real.set_factors(std::vector<double>{0.5});
  CHECK(real.code(3, 17) == 2);
  CHECK(real.code(kHigh, 0) == 127);
  CHECK_THROWS_WITH(real.set_factors(std::vector<double>{1, -1}), Contains("channel 1: expected"));
}

TEST_CASE("requantize: names", "[fast]") {
  for (const Requantization how :
       {Requantization::real, Requantization::fixed_single, Requantization::fixed_double})
    CHECK(parse_requantization(row_of(how).name) == how);
  CHECK_THROWS_WITH(parse_requantization("fixed-point-singel"),
                    Contains("did you mean 'fixed-point-single'"));
}

}  // namespace numemu::requantize_test
