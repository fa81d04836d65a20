// Decimals and shares in percent, as people read them.
#include "experiments/report/number_text.hpp"

#include <cmath>
#include <vector>

#include "tests/catch.hpp"

namespace number_text_test {

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

TEST_CASE("figures of findings, with what they may be off by", "[fast]") {
  CHECK(figure_text(1.23456, 0.0123, "-") == "1.235 ± 0.012");
  CHECK(figure_text(1.23456, 0.0123, "-", "+-") == "1.235 +- 0.012");
  for (const double none : std::vector<double>{0, -1, NAN, HUGE_VAL})
    CHECK(figure_text(-2, none, "") == "-2");
  CHECK(figure_text(NAN, 1, "–") == "–");
  CHECK(interval_text(1, 2.5, "-") == "[1, 2.5]");
  CHECK(interval_text(-HUGE_VAL, 2.5, "-") == "-");
}

TEST_CASE("numbers have as many decimals as leave them five digits that count", "[fast]") {
  CHECK(decimal_text(2103, 6) == "2103.0");
  CHECK(decimal_text(2103.27, 4) == "2103.3");
  CHECK(decimal_text(123456, 6) == "123456");
  CHECK(decimal_text(-12.345678, 6, true) == "-12.346");
  CHECK(decimal_text(0.5, 4, true) == "+0.5000");
  CHECK(decimal_text(0.0123456, 4) == "0.0123");
  CHECK(decimal_text(2.302585, 4) == "2.3026");
  CHECK(decimal_text(0, 6) == "0.000000");
  CHECK(decimal_text(NAN, 4) == "nan");
}

}  // namespace number_text_test
