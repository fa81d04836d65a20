// Thresholds first in, first out.
#include "policies/mask/prune.hpp"

#include <cmath>

#include "policies/state_bytes.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace prune_test {

using namespace numemu::policies;

TEST_CASE("the mean of the last thresholds predicts, once there are enough", "[fast]") {
  ThresholdHistory history;
  CHECK_FALSE(history.prediction(3).has_value());
  history.push(1, 3);
  history.push(2, 3);
  CHECK_FALSE(history.prediction(3).has_value());
  history.push(6, 3);
  CHECK(history.prediction(3) == 3);
  history.push(7, 3);  // 1 leaves
  CHECK(history.prediction(3) == 5);
  CHECK(history.prediction(1) == 7);
  CHECK(history.prediction(2) == 6.5);
  CHECK_FALSE(history.prediction(4).has_value());
  CHECK_FALSE(history.prediction(0).has_value());
}

TEST_CASE("thresholds that say nothing are left out", "[fast]") {
  ThresholdHistory history;
  history.push(4, 2);
  for (const double bad : {0.0, -1.0, HUGE_VAL, std::nan("")}) history.push(bad, 2);
  CHECK_FALSE(history.prediction(2).has_value());
  history.push(6, 2);
  CHECK(history.prediction(2) == 5);
}

TEST_CASE("a history continues from its state", "[fast]") {
  ThresholdHistory history;
  for (const double threshold : {0.1, 1e-30, 3e-7, 2.0}) history.push(threshold, 3);
  ThresholdHistory resumed;
  resumed.push(99, 3);
  resumed.load("h", history.state());
  CHECK(resumed.state() == history.state());
  CHECK(history.state().size() == 24);
  resumed.push(5, 3);
  history.push(5, 3);
  CHECK(resumed.prediction(3) == history.prediction(3));

  ThresholdHistory empty;
  empty.load("h", "");
  CHECK_FALSE(empty.prediction(1).has_value());
  CHECK_THAT(numemu::test::message_of([&] { empty.load("fc1", "123"); }), Catch::Contains("fc1"));
  CHECK_THAT(
      numemu::test::message_of([&] { empty.load("fc1", to_bytes({bits_of(std::nan(""))})); }),
      Catch::Contains("finite and positive"));
}

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

}  // namespace prune_test
