// Losses of any size are printed with the digits that count.
#include "experiments/report/decimals.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace numemu::experiments;

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
