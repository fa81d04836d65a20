// Scale rule lognormal: where it puts the mean of log2|x|, and what margin that leaves of the
// relative error's closed form.
#include <cmath>
#include <vector>

#include "formats/analysis/distribution.hpp"
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace lognormal_test {

using namespace numemu;

namespace {

double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

/// The expected |x - Q(x)| / |x| of log2|x| ~ N(mu, s^2) under n1 exponent and n2 mantissa bits:
/// zero below 2^-E, saturation at 2^E, E = 2^(n1-1) (specs/mechanisms.md, lognormal gradients).
double predicted(int n1, int n2, double s, double mu) {
  const double e = std::ldexp(1, n1 - 1), a = std::log(2.0);
  return (normal_cdf((e - mu) / s) - normal_cdf((-e - mu) / s)) * std::ldexp(1, -n2) / (8 * a) +
         normal_cdf((-e - mu) / s) + normal_cdf((mu - e) / s) -
         std::exp2(e - mu) * std::exp(a * a * s * s / 2) * normal_cdf((mu - e) / s - a * s);
}

/// The same of one number.
double relative_error(double x, int n1, int n2) {
  const double m = std::abs(x), limit = std::exp2(std::ldexp(1, n1 - 1));
  if (m < 1 / limit) return 1;
  if (m >= limit) return (m - limit) / m;
  int exponent = 0;
  std::frexp(m, &exponent);
  const double ulp = std::ldexp(1, exponent - 1 - n2);
  return std::abs(std::nearbyint(m / ulp) * ulp - m) / m;
}

}  // namespace

TEST_CASE("lognormal: the mean of log2 |x| comes to lie MARGIN binades below 1", "[fast]") {
  Conversion c;
  c.format = &find_format("float8_e4m3fn");
  const std::vector<float> x = {0.25f, -4, 0, 16, 0.0625f, 2, NAN, -INFINITY};
  // -2, 2, 4, -4, 1: the mean is 0.2.
  const auto n = static_cast<std::int64_t>(x.size());
  CHECK(find_scale_rule("lognormal(0)").scale({x.data(), n, &c}) ==
        Approx(std::exp2(0.2)).epsilon(1e-7));
  CHECK(find_scale_rule("lognormal(3)").scale({x.data(), n, &c}) ==
        Approx(std::exp2(3.2)).epsilon(1e-7));
  const float small = 0x1p-140f, zero = 0;
  CHECK(find_scale_rule("lognormal(0)").scale({&small, 1, &c}) == 0x1p-126f);
  CHECK(find_scale_rule("lognormal(-0.5)").scale({&zero, 1, &c}) == 1);
  CHECK_FALSE(find_scale_rule("lognormal(3)").fills_range);
}

TEST_CASE("lognormal: the margin decides the relative error as its closed form says", "[fast]") {
  // specs/mechanisms.md: 3 exponent bits, 2 mantissa bits, s = 3 binades.
  CHECK(predicted(3, 2, 3, 1) == Approx(0.17014).margin(5e-6));
  CHECK(predicted(3, 2, 3, 0.6) == Approx(0.1673).margin(5e-5));
  CHECK(predicted(3, 2, 3, -3) == Approx(0.4016).margin(5e-5));
  constexpr std::int64_t kDraws = 200'000;
  const Distribution law = Distribution::parse("lognormal:3:log2", false);
  std::vector<float> x(kDraws);
  for (std::int64_t i = 0; i < kDraws; ++i)
    x[i] = static_cast<float>(1e-4 * law.draw({.seed = 1, .stream = Stream::data}, i));
  Conversion c;
  c.format = &find_format("float8_e4m3fn");
  for (const auto& [rule, mu] :
       {std::pair{"lognormal(-1)", 1.0}, {"lognormal(0)", 0.0}, {"lognormal(3)", -3.0}}) {
    CAPTURE(rule);
    const double scale = find_scale_rule(rule).scale({x.data(), kDraws, &c});
    double sum = 0, squares = 0;
    for (const float v : x) {
      const double error = relative_error(v / scale, 3, 2);
      sum += error;
      squares += error * error;
    }
    const double mean = sum / kDraws;
    const double deviation = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    // Rounding in a binade is not quite that of a log-uniform mantissa: 0.0005 beside 4 errors.
    CHECK(std::abs(mean - predicted(3, 2, 3, mu)) < 4 * deviation + 5e-4);
  }
}

}  // namespace lognormal_test
