// Closed-form partial moments against numerical quadrature of the densities.
#include "formats/analysis/density.hpp"

#include <boost/math/distributions/laplace.hpp>
#include <boost/math/distributions/lognormal.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace density_test {

using namespace numemu;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Both sides are good to about 1e-13 relative; narrow intervals far out lose two or three digits of
// the difference.
constexpr double kTolerance = 1e-10;

using Pdf = std::function<double(double)>;
using Intervals = std::vector<std::pair<double, double>>;

double integral(const Pdf& pdf, int power, double low, double high) {
  return boost::math::quadrature::gauss_kronrod<double, 61>::integrate(
      [&](double x) { return pdf(x) * std::pow(x, power); }, low, high, 6, 1e-12);
}

/// Intervals must not contain a kink of the density inside.
void check_moments(const Density& density, const Pdf& pdf, const Intervals& intervals) {
  for (const auto& [low, high] : intervals) {
    INFO(density.name() << " on [" << low << ", " << high << "]");
    const Density::Moments m = density.moments(low, high);
    const double parts[3] = {m.p0, m.p1, m.p2};
    for (int k = 0; k < 3; ++k) {
      const double expected = integral(pdf, k, low, high);
      // An odd moment may vanish by symmetry: its size is that of the integral of |x|^k.
      const double size = integral(
          [&](double x) { return pdf(x) * (k == 1 ? std::copysign(1.0, x) : 1); }, k, low, high);
      INFO("moment " << k << ": " << parts[k] << " against " << expected);
      CHECK(std::abs(parts[k] - expected) <= kTolerance * std::abs(size));
    }
    CHECK(density.cdf(high) - density.cdf(low) == Approx(m.p0).margin(1e-14));
  }
}

void check_total(const Density& density, double mean, double second) {
  const Density::Moments m = density.moments(-kInfinity, kInfinity);
  CHECK(m.p0 == Approx(1).epsilon(1e-13));
  CHECK(m.p1 == Approx(mean).epsilon(1e-13).margin(1e-14));
  CHECK(m.p2 == Approx(second).epsilon(1e-13));
}

}  // namespace

TEST_CASE("normal partial moments", "[fast]") {
  const double mean = 0.3, sigma = 1.7;
  const auto density = normal_density(mean, sigma);
  const boost::math::normal reference(mean, sigma);
  check_moments(*density, [&](double x) { return boost::math::pdf(reference, x); },
                {{-1, 2},
                 {-20, -0.5},
                 {0.25, 0.26},
                 {-3.5, -3.45},
                 {10, 11},
                 {-13, -12.9},
                 {-kInfinity, -9},
                 {9, kInfinity}});
  check_total(*density, mean, sigma * sigma + mean * mean);
}

TEST_CASE("laplace partial moments", "[fast]") {
  const double location = -0.4, scale = 0.6;
  const auto density = laplace_density(location, scale);
  const boost::math::laplace reference(location, scale);
  check_moments(*density, [&](double x) { return boost::math::pdf(reference, x); },
                {{-0.4, 2},
                 {-5, -0.4},
                 {0.5, 0.501},
                 {20, 20.1},
                 {-20, -17},
                 {-kInfinity, -3},
                 {3, kInfinity}});
  check_total(*density, location, 2 * scale * scale + location * location);
  const Density::Moments across = density->moments(-1, 1), left = density->moments(-1, location),
                         right = density->moments(location, 1);
  CHECK(across.p2 == Approx(left.p2 + right.p2).epsilon(1e-13));
}

TEST_CASE("uniform partial moments", "[fast]") {
  const auto density = uniform_density(-1, 3);
  check_moments(*density, [](double) { return 0.25; }, {{-1, 3}, {0.5, 0.5001}, {2, 3}});
  check_total(*density, 1, 28.0 / 12);
  CHECK(density->moments(4, 5).p0 == 0);
  CHECK(density->moments(2, 9).p0 == 0.25);
}

TEST_CASE("lognormal partial moments of both signs, wide and narrow", "[fast]") {
  for (const double sigma : {0.3, 1.0, 2.5}) {
    const double mu = -2, positive = 0.7;
    const auto density = lognormal_density(mu, sigma, positive);
    const boost::math::lognormal reference(mu, sigma);
    const auto pdf = [&](double x) {
      return (x > 0 ? positive : 1 - positive) * boost::math::pdf(reference, std::abs(x));
    };
    check_moments(
        *density, pdf,
        {{0.05, 0.5}, {0.1, 0.101}, {-0.5, -0.05}, {1, 3}, {-0.02, -0.019}, {0.001, 0.002}});
    const double bulk = std::exp(mu + sigma * sigma / 2);
    check_total(*density, (2 * positive - 1) * bulk, bulk * bulk * std::exp(sigma * sigma));
    const Density::Moments across = density->moments(-0.1, 0.2), left = density->moments(-0.1, 0),
                           right = density->moments(0, 0.2);
    CHECK(across.p1 == Approx(left.p1 + right.p1).epsilon(1e-13));
  }
}

TEST_CASE("a lognormal whose second moment overflows still has its partial moments", "[fast]") {
  const auto density = lognormal_density(0, 30, 1);  // exp(2 sigma^2) = exp(1800)
  const boost::math::lognormal reference(0, 30);
  check_moments(*density, [&](double x) { return boost::math::pdf(reference, x); },
                {{0.5, 1}, {1, 1.0625}, {100, 200}});
}

TEST_CASE("a mass at zero and a truncation, in either order", "[fast]") {
  const auto outer = with_zero_mass(truncated(normal_density(1, 2), 0, 5), 0.25);
  CHECK(outer->zero_mass() == 0.25);
  CHECK(outer->cdf(-1e-300) == 0);
  CHECK(outer->cdf(0) == Approx(0.25).epsilon(1e-14));
  CHECK(outer->cdf(5) == 1);
  CHECK(outer->moments(-kInfinity, kInfinity).p0 == Approx(0.75).epsilon(1e-14));

  const auto base = normal_density(1, 2);
  const double inside = base->moments(0, 5).p0;
  CHECK(outer->moments(1, 2).p1 == Approx(0.75 * base->moments(1, 2).p1 / inside).epsilon(1e-13));
  CHECK(outer->moments(4, 9).p2 == Approx(0.75 * base->moments(4, 5).p2 / inside).epsilon(1e-13));

  const auto inner = truncated(with_zero_mass(normal_density(1, 2), 0.25), 0, 5);
  const double mass = 0.25 + 0.75 * inside;
  CHECK(inner->zero_mass() == Approx(0.25 / mass).epsilon(1e-14));
  CHECK(inner->cdf(-1e-300) == 0);
  CHECK(inner->cdf(0) == Approx(0.25 / mass).epsilon(1e-14));
  CHECK(inner->moments(0, 5).p0 + inner->zero_mass() == Approx(1).epsilon(1e-14));
  CHECK(truncated(with_zero_mass(normal_density(1, 2), 0.25), 0.5, 5)->zero_mass() == 0);
}

TEST_CASE("densities say what they are and refuse parameters that are not a density", "[fast]") {
  CHECK(normal_density(0, 0.5)->name() == "normal(0, 0.5)");
  CHECK(with_zero_mass(truncated(laplace_density(0, 1), 0, 4), 0.5)->name() ==
        "laplace(0, 1) on [0, 4] with 0.5 at zero");
  CHECK_THROWS_AS(normal_density(0, 0), Error);
  CHECK_THROWS_AS(laplace_density(NAN, 1), Error);
  CHECK_THROWS_AS(uniform_density(1, 1), Error);
  CHECK_THROWS_AS(lognormal_density(0, 1, 1.5), Error);
  CHECK_THROWS_AS(with_zero_mass(normal_density(0, 1), -0.1), Error);
  CHECK_THROWS_AS(truncated(uniform_density(0, 1), 2, 3), Error);
}

TEST_CASE("far beyond the bulk moments are zero and not undefined", "[fast]") {
  const Density::Moments far = normal_density(0, 1)->moments(400, 432);
  CHECK(far.p0 == 0);
  CHECK(far.p1 == 0);
  CHECK(far.p2 == 0);
}

TEST_CASE("a density and its knots give its own moments under a Gauss rule of 10 points",
          "[fast]") {
  using Rule = boost::math::quadrature::gauss<double, 10>;
  constexpr double kRule = 1e-13;  // promised 1e-14 an interval, and the closed forms' own error
  std::vector<std::unique_ptr<Density>> densities;
  densities.push_back(normal_density(0.3, 1.7));
  densities.push_back(laplace_density(-0.4, 0.6));
  densities.push_back(uniform_density(-1, 3));
  densities.push_back(lognormal_density(0, 0.3, 0.5));
  densities.push_back(lognormal_density(0, 10, 0.25));
  densities.push_back(truncated(normal_density(0, 1), 0, kInfinity));
  densities.push_back(with_zero_mass(laplace_density(0, 1), 0.25));
  for (const auto& density : densities) {
    const std::vector<double> knots = density->knots();
    double sum[3] = {};
    for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
      REQUIRE(knots[i] < knots[i + 1]);
      for (int k = 0; k < 3; ++k) {
        sum[k] += Rule::integrate([&](double x) { return std::pow(x, k) * density->pdf(x); },
                                  knots[i], knots[i + 1]);
      }
    }
    const Density::Moments whole = density->moments(-kInfinity, kInfinity);
    INFO(density->name());
    CHECK(sum[0] == Approx(whole.p0).epsilon(kRule));
    CHECK(std::abs(sum[1] - whole.p1) <= kRule * std::sqrt(whole.p2));
    CHECK(sum[2] == Approx(whole.p2).epsilon(kRule));
  }
}

}  // namespace density_test
