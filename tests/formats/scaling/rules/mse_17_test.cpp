// Scale rule mse(17): the least squared error of its few candidates, by exact fractions.
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace mse_17_test {

using namespace numemu;
using namespace numemu::test;

TEST_CASE("mse(17) of powers of two looks at floor and its neighbours", "[fast]") {
  CHECK(exponent("mse(17)", "mxfp4", 6.0f) == 1);
  CHECK(exponent("mse(17)", "mxfp4", 7.5f) == 1);
  CHECK(exponent("mse(17)", "mxint8", 0x1.fffffep127f) == 127);
  CHECK(exponent("mse(17)", "mxfp4", 0.0f) == -127);
}

TEST_CASE("mse(17) of real scales looks at the rounded candidates of the scale format", "[fast]") {
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
    CHECK(find_scale_rule("mse(17)", f).scale(request) == best);
  }
}

}  // namespace mse_17_test
