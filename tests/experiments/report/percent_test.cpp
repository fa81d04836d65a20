// A share is printed with the same digits wherever it is printed.
#include "experiments/report/percent.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace numemu::experiments;

TEST_CASE("halves go away from zero, whatever the float64 of the share is", "[fast]") {
  CHECK(percent_text(0.14375) == "14.38");  // 115 of 800: 100 times it is below 14.375
  CHECK(percent_text(115.0 / 800) == "14.38");
  CHECK(percent_text(0.14385) == "14.39");
  CHECK(percent_text(-0.14375, "{:+.2f}") == "-14.38");
  CHECK(percent_text(0.1437499) == "14.38");  // six digits, as rows have it
  CHECK(percent_text(0.143749) == "14.37");
  CHECK(percent_text(1) == "100.00");
  CHECK(percent_text(0) == "0.00");
}

TEST_CASE("intervals in percent, or none", "[fast]") {
  CHECK(percent_interval(0.1, 0.25) == "[10.00, 25.00]");
  CHECK(percent_interval(-0.0012, 0.0031, "{:+.2f}") == "[-0.12, +0.31]");
  CHECK(percent_interval(NAN, NAN) == "-");
}
