// Tail functions of the normal law against Boost.Math in 50 digits.
#include "formats/analysis/gaussian.hpp"

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_dec_float.hpp>
#include <cmath>

#include "tests/catch.hpp"

using namespace numemu;
using Exact = boost::multiprecision::cpp_dec_float_50;

namespace {

// exp(t^2): the square's own rounding is 25^2 * 2^-53 = 7e-14 at the largest t that is not
// asymptotic.
constexpr double kScaledTolerance = 2e-13;
// One rounding of z / sqrt(2) moves erfc by z^2 * 2^-52 relative, 1.4e-14 at z = 8, and a narrow
// pair amplifies it.
constexpr double kBetweenTolerance = 2e-12;

Exact exact_between(double a, double b) {
  const Exact root = boost::multiprecision::sqrt(Exact(2));
  return (boost::math::erfc(Exact(a) / root) - boost::math::erfc(Exact(b) / root)) / 2;
}

}  // namespace

TEST_CASE("normal mass between two points keeps its relative accuracy in both tails", "[fast]") {
  for (const double a : {-8.0, -3.0, -0.7, -0.01, 0.0, 0.3, 0.66, 0.68, 2.0, 5.0, 8.0}) {
    for (const double width : {0.01, 0.1, 1.0, 4.0}) {
      const double exact = static_cast<double>(exact_between(a, a + width));
      INFO("a " << a << " width " << width);
      CHECK(std::abs(gaussian::between(a, a + width) / exact - 1) < kBetweenTolerance);
    }
  }
}

TEST_CASE("scaled erfc equals exp(t^2) erfc(t) on both sides of its switch", "[fast]") {
  for (const double t : {0.0, 0.5, 3.0, 10.0, 24.999, 25.0, 25.001, 30.0, 100.0}) {
    const Exact u = t;
    const double exact =
        static_cast<double>(boost::multiprecision::exp(u * u) * boost::math::erfc(u));
    INFO("t " << t);
    CHECK(std::abs(gaussian::scaled_erfc(t) / exact - 1) < kScaledTolerance);
  }
}
