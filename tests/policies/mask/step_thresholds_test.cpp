// Thresholds of a step: shared by its products, predicted from earlier steps.
#include "policies/mask/step_thresholds.hpp"

#include "tests/catch.hpp"

namespace step_thresholds_test {

using numemu::policies::StepThresholds;

TEST_CASE("step thresholds: products that read one tensor share its threshold", "[fast]") {
  StepThresholds thresholds;
  int asked = 0;
  const auto own = [&] { return 1.0 + asked++; };
  CHECK(thresholds.of(0, 10, 0, own) == 1.0);
  CHECK(thresholds.of(0, 10, 0, own) == 1.0);
  CHECK(thresholds.of(1, 10, 0, own) == 2.0);
  CHECK(thresholds.of(0, 30, 0, own) == 3.0);
  thresholds.begin_step();
  CHECK(thresholds.of(0, 10, 0, own) == 4.0);
  CHECK(asked == 4);
}

TEST_CASE("step thresholds: a history predicts once it is full, and survives a restart", "[fast]") {
  StepThresholds thresholds;
  const auto step = [](StepThresholds& t, double own) {
    t.begin_step();
    return t.of(0, 10, 2, [&] { return own; });
  };
  CHECK(step(thresholds, 1) == 0);
  CHECK(step(thresholds, 2) == 0);
  CHECK(step(thresholds, 6) == 1.5);
  StepThresholds resumed;
  resumed.load("state", thresholds.state());
  CHECK(step(thresholds, 5) == 4);
  CHECK(step(resumed, 5) == 4);
  CHECK(step(resumed, 5) == 5.5);
}

}  // namespace step_thresholds_test
