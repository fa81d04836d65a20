// Scale rule mse for powers of two: the least squared error of three, by exact fractions.
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/policies/scale/exponents.hpp"

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// The sum of squared errors of x under s.
oracle::Fraction squared_error(const std::vector<oracle::Element>& list, const float* x,
                               std::int64_t n, int s, RoundingMode mode) {
  oracle::Fraction sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const oracle::Fraction step = oracle::power_of_two(s);
    const oracle::Fraction d =
        oracle::rounded(list, oracle::fraction(x[i]) / step, mode).value * step -
        oracle::fraction(x[i]);
    sum += d * d;
  }
  return sum;
}

}  // namespace

TEST_CASE("mse takes the least squared error, ties to the larger", "[fast]") {
  const RandomSource random{.seed = 9};
  int differs = 0;
  for (const char* name : {"mxfp4", "mxfp6_e3m2", "mxint8", "bfp(4,16)"}) {
    const BlockFormat& f = find_block_format(name);
    const auto list = oracle::elements_of(*f.element, f.element_exponent, true);
    const int emax = floor_log2(largest_fraction(f), 0);
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rup}) {
      Conversion conversion;
      conversion.format = f.element;
      conversion.rounding.mode = mode;
      constexpr int kBlocks = 60;
      std::vector<float> x, amax;
      std::vector<std::int64_t> offsets = {0};
      for (std::uint64_t b = 0; b < kBlocks; ++b) {
        float largest = 0;
        for (std::uint64_t i = 0; i < b % 32 + 1; ++i) {
          const double u = random.uniform(1000 * b + i) - random.uniform(1000 * b + 500 + i);
          x.push_back(static_cast<float>(std::ldexp(u, static_cast<int>(b % 40) - 20)));
          largest = std::max(largest, std::fabs(x.back()));
        }
        amax.push_back(largest);
        offsets.push_back(static_cast<std::int64_t>(x.size()));
      }
      std::vector<std::int32_t> s(kBlocks);
      find_scale_rule("mse", f).exponents(
          {&f, &conversion, kBlocks, amax.data(), x.data(), offsets.data(), s.data()});
      for (std::size_t b = 0; b < kBlocks; ++b) {
        const int floor = std::ilogb(amax[b]) - emax;
        int best = floor + 1;
        const auto error = [&](int e) {
          return squared_error(list, x.data() + offsets[b], offsets[b + 1] - offsets[b], e, mode);
        };
        for (const int e : {floor, floor - 1})
          if (error(e) < error(best)) best = e;
        CAPTURE(name, static_cast<int>(mode), b);
        REQUIRE(s[b] == best);
        differs += best != floor;
      }
    }
  }
  CHECK(differs > 50);
}

TEST_CASE("mse sees terms that a float64 sum absorbs", "[fast]") {
  const BlockFormat& f = find_block_format("mxfp8_e5m2");
  Conversion conversion;
  conversion.format = f.element;
  // 2^-14 and 2^-15 give 1.1 the same error, 0.0225; only 2^-15 represents 4e-10 at all well.
  const float x[2] = {1.1f, 4e-10f};
  const std::int64_t offsets[2] = {0, 2};
  std::int32_t s = 0;
  find_scale_rule("mse", f).exponents({&f, &conversion, 1, x, x, offsets, &s});
  CHECK(s == -15);
}

TEST_CASE("mse of a wide range of numbers, against the exact search", "[fast]") {
  const RandomSource random{.seed = 31};
  int close = 0;
  for (const char* name : {"mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp4", "mx(bf16,8)"}) {
    const BlockFormat& f = find_block_format(name);
    const auto list = oracle::elements_of(*f.element, f.element_exponent, true);
    const int emax = floor_log2(largest_fraction(f), 0);
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rup}) {
      Conversion conversion;
      conversion.format = f.element;
      conversion.rounding.mode = mode;
      for (std::uint64_t b = 0; b < 60; ++b) {
        constexpr std::uint64_t kSize = 6;
        float x[kSize], amax = 0;
        for (std::uint64_t i = 0; i < kSize; ++i) {
          // The first number leads, the others lie up to 2^-80 below it, some at the same place.
          const std::uint64_t at = 100 * b + 3 * i;
          const int e = i == 0 ? 0 : -static_cast<int>(random.bits(at, 32) % (b % 2 ? 80 : 40));
          const double u = 1 + random.uniform(at + 1);
          x[i] = static_cast<float>(std::ldexp(random.bits(at + 2, 1) != 0 ? -u : u, e));
          amax = std::max(amax, std::fabs(x[i]));
        }
        const std::int64_t offsets[2] = {0, kSize};
        std::int32_t s = 0;
        find_scale_rule("mse", f).exponents({&f, &conversion, 1, &amax, x, offsets, &s});
        const int floor = std::ilogb(amax) - emax;
        int best = floor + 1;
        oracle::Fraction least = squared_error(list, x, kSize, best, mode);
        for (const int e : {floor, floor - 1}) {
          const oracle::Fraction error = squared_error(list, x, kSize, e, mode);
          const oracle::Fraction gap = error < least ? least - error : error - least;
          close += gap != 0 && gap < least * oracle::power_of_two(-50);
          if (!(error < least)) continue;
          best = e;
          least = error;
        }
        CAPTURE(name, static_cast<int>(mode), b);
        REQUIRE(s == best);
      }
    }
  }
  CHECK(close > 20);  // float64 sums could not decide these
}

TEST_CASE("mse under stochastic rounding: wide ranges against the exact search", "[fast]") {
  const RandomSource random{.seed = 5};
  Conversion conversion;
  conversion.rounding = parse_rounding("sr(8)");
  for (const char* name : {"mxfp8_e5m2", "mxfp4"}) {
    const BlockFormat& f = find_block_format(name);
    conversion.format = f.element;
    const auto list = oracle::elements_of(*f.element, f.element_exponent, true);
    const int emax = floor_log2(largest_fraction(f), 0);
    // The neighbours of x under 2^e, (x - low) (high - x); beyond the ends the square.
    const auto expected = [&](float x, int e) {
      const oracle::Fraction step = oracle::power_of_two(e), q = oracle::fraction(x) / step;
      const oracle::Fraction low =
          oracle::rounded(list, q, RoundingMode::rdn).value * step - oracle::fraction(x);
      const oracle::Fraction high =
          oracle::rounded(list, q, RoundingMode::rup).value * step - oracle::fraction(x);
      const oracle::Fraction product = low * high;
      return product < 0 ? oracle::Fraction(-product) : product;
    };
    for (std::uint64_t b = 0; b < 100; ++b) {
      const float x[3] = {
          static_cast<float>(1 + random.uniform(3 * b)),
          static_cast<float>(std::ldexp(random.uniform(3 * b + 1), -static_cast<int>(b % 70))),
          static_cast<float>(-random.uniform(3 * b + 2))};
      const std::int64_t offsets[2] = {0, 3};
      std::int32_t s = 0;
      find_scale_rule("mse", f).exponents({&f, &conversion, 1, x, x, offsets, &s});
      const int floor = std::ilogb(x[0]) - emax;
      const auto error = [&](int e) {
        return oracle::Fraction(expected(x[0], e) + expected(x[1], e) + expected(x[2], e));
      };
      int best = floor + 1;
      for (const int e : {floor, floor - 1})
        if (error(e) < error(best)) best = e;
      CAPTURE(name, b);
      REQUIRE(s == best);
    }
  }
}

TEST_CASE("mse of powers of two: ties, ends and zeros", "[fast]") {
  // 2 is exact under 2^0 (4 under 2^-1 too, 1 under 2^1): the larger of the exact ones.
  CHECK(exponent("mse", "mxfp4", 2.0f) == 0);
  CHECK(exponent("mse", "mxfp4", 4.0f) == 1);
  // 6 and 12 are exact, 3 is too: s = 1.
  CHECK(exponent("mse", "mxfp4", 6.0f) == 1);
  // Just above 7: floor saturates by more than 1, 2^1 gives 8.
  CHECK(exponent("mse", "mxfp4", 7.5f) == 1);
  CHECK(exponent("mse", "mxfp4", 0.0f) == -127);
  CHECK(exponent("mse", "mxfp4", 0x1p-149f) == -127);
  CHECK(exponent("mse", "mxint8", 0x1.fffffep127f) == 127);
}

TEST_CASE("mse under stochastic rounding weighs the expected error", "[fast]") {
  const BlockFormat& f = find_block_format("mxfp4");
  // 5 lies in [4, 6] under 2^0: variance 1; in [4, 6] under 2^1 (2, 3): 1; 2^-1: 10 saturates at 6.
  CHECK(exponents("mse", f, {5.0f}, parse_rounding("sr(8)"))[0] == 1);
  // 3.5 under 2^0: (3.5 - 3)(4 - 3.5) = 0.25; the floor rule's 2^-1 saturates.
  CHECK(exponents("mse", f, {3.5f}, parse_rounding("sr(8)"))[0] == 0);
}

TEST_CASE("mse of real scales looks at the rounded candidates of the scale format", "[fast]") {
  const RandomSource random{.seed = 2};
  const BlockFormat& f = find_block_format("group(int4,32,bfloat16)");
  const auto list = oracle::elements_of(*f.element, 0, true);
  Conversion conversion;
  conversion.format = f.element;
  for (std::uint64_t k = 0; k < 40; ++k) {
    std::vector<float> x;
    for (std::uint64_t i = 0; i < 32; ++i)
      x.push_back(static_cast<float>(random.uniform(64 * k + i) - random.uniform(64 * k + 32 + i)));
    const ScaleRequest request{x.data(), 32, &conversion, &f};
    const float widest = find_scale_rule("absmax", f).scale(request);
    float best = 0;
    oracle::Fraction least = 0;
    for (int j = 0; j <= 16; ++j) {
      const float s = round_scale(request, static_cast<float>(widest * std::pow(2.0, -j / 8.0)));
      oracle::Fraction sum = 0;
      for (const float y : x) {
        const oracle::Fraction d =
            oracle::rounded(list, oracle::fraction(y) / oracle::fraction(s), RoundingMode::rne)
                    .value *
                oracle::fraction(s) -
            oracle::fraction(y);
        sum += d * d;
      }
      if (best != 0 && !(sum < least)) continue;
      best = s;
      least = sum;
    }
    CAPTURE(k, widest);
    CHECK(find_scale_rule("mse", f).scale(request) == best);
  }
}
