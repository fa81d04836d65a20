// Gamma, beta and binomial laws against Boost.Math.
#include "formats/portable/gamma.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "tests/catch.hpp"

namespace gamma_test {

using namespace numemu;

namespace {

constexpr double kClose = 1e-12, kLeast = 1e-290;

void check(double own, double boost) {
  if (boost > kLeast) CHECK(std::fabs(own / boost - 1) < kClose);
}

}  // namespace

TEST_CASE("shares of gamma and beta laws are Boost's in either tail", "[fast]") {
  for (const double a : {0.5, 1.0, 2.5, 30.0, 1e3, 1e6}) {
    for (const double t : {1e-6, 0.1, 0.7, 0.99, 1.0, 1.01, 1.5, 4.0, 30.0}) {
      INFO("a " << a << " x " << a * t);
      const auto gamma = portable::gamma_shares(a, a * t);
      check(gamma.below, boost::math::gamma_p(a, a * t));
      check(gamma.above, boost::math::gamma_q(a, a * t));
    }
    for (const double b : {0.5, 1.0, 7.0, 2e4}) {
      for (const double x : {0x1p-30, 0x1p-7, 0.25, 0.5, 0.75, 1 - 0x1p-7, 1 - 0x1p-20}) {
        INFO("a " << a << " b " << b << " x " << x);
        const auto beta = portable::beta_shares(a, b, x, 1 - x);
        check(beta.below, boost::math::ibeta(a, b, x));
        check(beta.above, boost::math::ibetac(a, b, x));
      }
    }
  }
}

TEST_CASE("ends of gamma and beta laws", "[fast]") {
  CHECK(portable::gamma_shares(3, 0).above == 1);
  CHECK(portable::gamma_shares(3, INFINITY).above == 0);
  CHECK(portable::beta_shares(3, 2, 0, 1).below == 0);
  CHECK(portable::beta_shares(3, 2, 1, 0).below == 1);
}

TEST_CASE("ln Gamma is Boost's", "[fast]") {
  for (double x = 0x1p-20; x < 1e9; x *= 1.07) {
    INFO("x " << x);
    const double boost = boost::math::lgamma(x);
    CHECK(std::fabs(portable::log_gamma(x) - boost) <= 1e-14 * std::max(1.0, std::fabs(boost)));
  }
}

}  // namespace gamma_test
