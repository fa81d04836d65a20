// Holm's procedure against the worked example of the definition and its limits.
#include "emu/stats/holm.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"

namespace numemu::stats::holm_test {
namespace {

TEST_CASE("Holm rejects step by step", "[fast]") {
  // Four tests at 5 %: the limits are 0.0125, 0.0167, 0.025 and 0.05 in ascending order.
  CHECK(holm({0.01, 0.04, 0.03, 0.005}) == std::vector<bool>{true, false, false, true});
  CHECK(holm({0.01, 0.02, 0.016, 0.012}) == std::vector<bool>{true, true, true, true});
  CHECK(holm({0.013, 0.0001, 0.017, 0.2}) == std::vector<bool>{true, true, true, false});
  CHECK(holm({0.02, 0.9}) == std::vector<bool>{true, false});
  CHECK(holm({0.026, 0.9}) == std::vector<bool>{false, false});
}

TEST_CASE("no test and NaN reject nothing", "[fast]") {
  CHECK(holm({}).empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(holm({nan, 0.04}) == std::vector<bool>{false, true});
}

}  // namespace
}  // namespace numemu::stats::holm_test
