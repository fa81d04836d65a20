// Own logarithm, exponential and quantile against the library's and Boost's.
#include "formats/analysis/portable_math.hpp"

#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "tests/catch.hpp"

using namespace numemu;

namespace {

constexpr double kUlp = 0x1p-52;

}  // namespace

TEST_CASE("log and exp within 3 ulp of the library's", "[fast]") {
  for (int i = 0; i < 20000; ++i) {
    const double t = -700 + 0.07 * i;
    const double x = std::exp(t);
    INFO("t " << t);
    REQUIRE(std::abs(portable::exp(t) - x) <= 4 * kUlp * x);  // the library's own ulp included
    REQUIRE(std::abs(portable::log(x) - std::log(x)) <= 4 * kUlp * std::abs(std::log(x)) + 0x1p-53);
  }
  CHECK(portable::log(1) == 0);
  CHECK(portable::exp(0) == 1);
  CHECK(portable::log(5e-324) == Approx(std::log(5e-324)).epsilon(1e-15));
}

TEST_CASE("the normal quantile inverts the distribution", "[fast]") {
  const boost::math::normal normal;
  constexpr double kRelative = 4e-15;  // AS 241 promises 1e-16 in exact arithmetic
  for (double u = 0x1p-54; u < 0.5; u *= 1.013) {
    INFO("u " << u);
    const double z = portable::normal_quantile(u);
    REQUIRE(z == Approx(quantile(normal, u)).epsilon(kRelative).margin(1e-16));
  }
  for (const double u : {0.075, 0.3, 0.5, 0.9, 0.925, 0.9999, 1 - 0x1p-53})
    CHECK(portable::normal_quantile(u) ==
          Approx(quantile(complement(normal, 1 - u))).epsilon(kRelative).margin(1e-16));
}
