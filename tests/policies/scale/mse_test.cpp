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
