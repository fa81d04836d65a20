// Step calibrate: ranges by another rule than the recipe's, and rules that do not serve it.
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace calibrate_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("calibrate: a percentile clips what the largest magnitude keeps", "[fast]") {
  const Recipe how = Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {
      "weight": {"format": "int4"}, "activation": {"format": "int4", "zero_point": "calibrated"}}})",
                                        "r");
  Tuning tuning = small_tuning(how);
  const FixedRanges whole = tuning.ranges;
  REQUIRE(whole.at("conv2").activation);
  run_steps("calibrate(percentile(90))", tuning);
  CHECK(tuning.ranges["conv2"].activation->high < whole.at("conv2").activation->high);
  run_steps("calibrate", tuning);
  CHECK(tuning.ranges == whole);
  CHECK_THROWS_WITH(run_steps("calibrate(mse)", tuning),
                    Catch::Contains(": step calibrate: ") &&
                        Catch::Contains("expected calibrate.rule absmax or percentile(P)"));
}

}  // namespace calibrate_test
