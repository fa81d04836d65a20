// The normal law against MPFR in 200 bits and Boost; its portable half against the other.
#include "formats/analysis/normal_law.hpp"

#include <mpfr.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <utility>

#include "tests/catch.hpp"

namespace normal_law_test {

using namespace numemu;

namespace {

// exp(t^2): the square's own rounding is 25^2 * 2^-53 = 7e-14 at the largest t that is not
// asymptotic.
constexpr double kScaledTolerance = 2e-13;
// One rounding of z / sqrt(2) moves erfc by z^2 * 2^-52 relative, 1.4e-14 at z = 8, and a narrow
// pair amplifies it.
constexpr double kBetweenTolerance = 2e-12;

class Exact {
 public:
  Exact() { mpfr_init2(value_, 200); }
  explicit Exact(double x) : Exact() { mpfr_set_d(value_, x, MPFR_RNDN); }
  ~Exact() { mpfr_clear(value_); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

double exact_between(double a, double b) {
  Exact low, high;
  for (const auto& [tail, x] : {std::pair<mpfr_ptr, double>{low, a}, {high, b}}) {
    mpfr_sqrt_ui(tail, 2, MPFR_RNDN);
    mpfr_d_div(tail, x, tail, MPFR_RNDN);
    mpfr_erfc(tail, tail, MPFR_RNDN);
  }
  mpfr_sub(low, low, high, MPFR_RNDN);
  return mpfr_get_d(low, MPFR_RNDN) / 2;
}

double exact_scaled_erfc(double t) {
  Exact square(t), tail(t);
  mpfr_sqr(square, square, MPFR_RNDN);
  mpfr_exp(square, square, MPFR_RNDN);
  mpfr_erfc(tail, tail, MPFR_RNDN);
  mpfr_mul(tail, tail, square, MPFR_RNDN);
  return mpfr_get_d(tail, MPFR_RNDN);
}

}  // namespace

TEST_CASE("normal mass between two points keeps its relative accuracy in both tails", "[fast]") {
  for (const double a : {-8.0, -3.0, -0.7, -0.01, 0.0, 0.3, 0.66, 0.68, 2.0, 5.0, 8.0}) {
    for (const double width : {0.01, 0.1, 1.0, 4.0}) {
      const double exact = exact_between(a, a + width);
      INFO("a " << a << " width " << width);
      CHECK(std::abs(normal::between(a, a + width) / exact - 1) < kBetweenTolerance);
    }
  }
}

TEST_CASE("scaled erfc equals exp(t^2) erfc(t) on both sides of its switch", "[fast]") {
  for (const double t : {0.0, 0.5, 3.0, 10.0, 24.999, 25.0, 25.001, 30.0, 100.0}) {
    const double exact = exact_scaled_erfc(t);
    INFO("t " << t);
    CHECK(std::abs(normal::scaled_erfc(t) / exact - 1) < kScaledTolerance);
  }
}

TEST_CASE("probabilities are those of erfc", "[fast]") {
  int compared = 0;
  for (double z = -36.9; z < 9; z += 0.0173) {
    // The square of z is rounded before its exponential is taken.
    const double tolerance = 1e-13 + 1e-16 * z * z, expected = normal::cdf(z);
    CHECK(std::fabs(normal::probability(z) / expected - 1) < tolerance);
    CHECK(std::fabs(normal::density(z) / normal::pdf(z) - 1) < tolerance);
    ++compared;
  }
  CHECK(compared > 2000);
  CHECK(normal::probability(-HUGE_VAL) == 0);
  CHECK(normal::probability(HUGE_VAL) == 1);
  CHECK(normal::probability(0) == 0.5);
  CHECK(normal::density(HUGE_VAL) == 0);
}

TEST_CASE("moments of the middle of the law", "[fast]") {
  constexpr double kTolerance = 1e-12;
  for (double t = 0.5; t < 12; t += 0.0731) {
    const double within = std::erf(t / std::sqrt(2.0));
    CHECK(normal::within(t) == Approx(within).epsilon(kTolerance));
    CHECK(normal::first_moment_within(t) ==
          Approx(2 * (normal::pdf(0) - normal::pdf(t))).epsilon(kTolerance));
    CHECK(normal::second_moment_within(t) ==
          Approx(within - 2 * t * normal::pdf(t)).epsilon(kTolerance));
  }
  // 2 phi(0) t^(k+1) / (k+1) to first order, the next term t^2 times smaller.
  for (const double t : {1e-4, 1e-9, 1e-60}) {
    const double density = 2 * normal::pdf(0), tolerance = t * t + kTolerance;
    CHECK(normal::within(t) == Approx(density * t).epsilon(tolerance));
    CHECK(normal::first_moment_within(t) == Approx(density * t * t / 2).epsilon(tolerance));
    CHECK(normal::second_moment_within(t) == Approx(density * t * t * t / 3).epsilon(tolerance));
  }
  CHECK(normal::within(0) == 0);
  CHECK(normal::first_moment_within(0) == 0);
  CHECK(normal::second_moment_within(0) == 0);
}

TEST_CASE("the normal quantile inverts the distribution", "[fast]") {
  const boost::math::normal law;
  constexpr double kRelative = 4e-15;  // AS 241 promises 1e-16 in exact arithmetic
  for (double u = 0x1p-54; u < 0.5; u *= 1.013) {
    INFO("u " << u);
    const double z = normal::quantile(u);
    REQUIRE(z == Approx(quantile(law, u)).epsilon(kRelative).margin(1e-16));
  }
  for (const double u : {0.075, 0.3, 0.5, 0.9, 0.925, 0.9999, 1 - 0x1p-53})
    CHECK(normal::quantile(u) ==
          Approx(quantile(complement(law, 1 - u))).epsilon(kRelative).margin(1e-16));
}

TEST_CASE("the tails beyond the quantiles of 95 % intervals", "[fast]") {
  CHECK(normal::cdf(0) == 0.5);
  CHECK(normal::cdf(-1.959963984540054) == Approx(0.025).epsilon(1e-12));
  CHECK(normal::cdf(1.959963984540054) == Approx(0.975).epsilon(1e-12));
}

TEST_CASE("normal draws are quantiles at the middle of a step", "[fast]") {
  const RandomSource random{.seed = 4};
  for (const int bits : {31, 32}) {
    const std::vector<float> x = normal::sample(random, 50, bits);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double z = normal::quantile((random.bits(i, bits) + 0.5) / std::pow(2, bits));
      CHECK(normal::draw(random, i, bits) == z);
      CHECK(x[i] == static_cast<float>(z));
    }
  }
}

}  // namespace normal_law_test
