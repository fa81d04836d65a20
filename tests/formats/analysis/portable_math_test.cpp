// Own logarithm and exponential against the library's.
#include "formats/analysis/portable_math.hpp"

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
