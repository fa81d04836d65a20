// Drawn signs: which draw gives which sign, the ends, NaN, mean and variance.
#include <cmath>
#include <vector>

#include "policies/exchange/base/rule.hpp"
#include "tests/catch.hpp"

namespace numemu::drawn_signs_test {

using namespace numemu::policies;

namespace {
constexpr RandomSource kRandom{7, Stream::quantize, 3, 0};
}

TEST_CASE("drawn signs: +1 where the uniform number is below (1 + x) / 2", "[fast]") {
  // Of x = 0.5: 0.74 is below 0.75, 0.76 is not.
  std::vector<float> x(1000, 0.5f);
  draw_signs(kRandom, x);
  int near = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(x[i] == (kRandom.uniform(i) < 0.75 ? 1 : -1));
    near += std::fabs(kRandom.uniform(i) - 0.75) < 0.01;
  }
  CHECK(near > 0);
}

TEST_CASE("drawn signs: the ends are certain and a NaN stays", "[fast]") {
  std::vector<float> x;
  for (int i = 0; i < 10000; ++i) x.push_back(i % 3 == 0 ? 1.0f : i % 3 == 1 ? -1.0f : NAN);
  const std::vector<float> before = x;
  draw_signs(kRandom, x);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK((x[i] == before[i] || (std::isnan(x[i]) && std::isnan(before[i]))));
}

TEST_CASE("drawn signs: the mean is x, the variance 1 - x^2", "[fast]") {
  constexpr int kDraws = 1 << 16;
  constexpr double kErrors = 4;  // standard errors of the mean
  for (const float value : {-0.9f, -0.2f, 0.0f, 0.01f, 0.7f}) {
    std::vector<float> x(kDraws, value);
    draw_signs(kRandom, x);
    double sum = 0;
    for (const float sign : x) {
      sum += sign;
      REQUIRE(std::fabs(sign) == 1);  // so that the variance is 1 less the squared mean
    }
    const double deviation = std::sqrt((1 - double{value} * double{value}) / kDraws);
    CHECK(std::fabs(sum / kDraws - value) < kErrors * deviation);
  }
}

}  // namespace numemu::drawn_signs_test
