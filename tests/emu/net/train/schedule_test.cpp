// The schedules at their corners, and unknown names.
#include "emu/net/train/schedule.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
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

TEST_CASE("an unknown schedule offers the nearest", "[fast]") {
  CHECK_THROWS_WITH(find_schedule("stepp"), Catch::Contains("'step'"));
}

}  // namespace
}  // namespace numemu::net
