// The schedules at their corners, and unknown names.
#include "emu/net/train/schedule.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net::schedule_test {
namespace {

TEST_CASE("cosine falls from 1 towards 0 over all steps", "[fast]") {
  const Schedule cosine = find_schedule("cosine");
  constexpr double kTolerance = 0x1p-48;
  CHECK(std::fabs(cosine({0, 100, 0, 10}) - 1) <= kTolerance);
  CHECK(std::fabs(cosine({25, 100, 2, 10}) - (0.5 + std::sqrt(0.125))) <= kTolerance);
  CHECK(cosine({50, 100, 5, 10}) == 0.5);
  CHECK(std::fabs(cosine({100, 100, 10, 10})) <= kTolerance);
}

TEST_CASE("step falls at half and at three quarters of the epochs", "[fast]") {
  const Schedule step = find_schedule("step");
  const std::vector<double> expected{1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01};
  for (std::int64_t epoch = 0; epoch < 8; ++epoch) CHECK(step({0, 1, epoch, 8}) == expected[epoch]);
}

TEST_CASE("linear falls in equal steps and constant stays", "[fast]") {
  const Schedule linear = find_schedule("linear"), constant = find_schedule("constant");
  CHECK(linear({0, 4, 0, 1}) == 1);
  CHECK(linear({1, 4, 0, 1}) == 0.75);
  CHECK(linear({3, 4, 0, 1}) == 0.25);
  CHECK(constant({3, 4, 0, 1}) == 1);
}

TEST_CASE("exponential falls by equal ratios to a ten-thousandth", "[fast]") {
  const Schedule exponential = find_schedule("exponential");
  constexpr double kUlp = 0x1p-22;  // relative, of float32 exp and of its argument below 16
  for (std::int64_t step = 0; step <= 4; ++step) {
    const double expected = std::pow(10.0, -static_cast<double>(step));
    CHECK(std::fabs(exponential({step, 4, 0, 1}) - expected) <= 4 * kUlp * expected);
  }
}

TEST_CASE("warm-up rises to 1 and the schedule follows over the steps that are left", "[fast]") {
  const Schedule linear = find_schedule("linear");
  const std::vector<double> expected{0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25};
  for (std::int64_t step = 0; step < 8; ++step)
    CHECK(rate_factor(linear, {step, 8, 0, 1}, 4) == expected[step]);
  CHECK(rate_factor(linear, {2, 8, 0, 1}, 0) == linear({2, 8, 0, 1}));
  CHECK(rate_factor(linear, {7, 8, 0, 1}, 100) == 0.08);  // a run shorter than its warm-up
}

TEST_CASE("an unknown schedule offers the nearest", "[fast]") {
  CHECK_THROWS_WITH(find_schedule("stepp"), Catch::Contains("'step'"));
}

}  // namespace
}  // namespace numemu::net::schedule_test
