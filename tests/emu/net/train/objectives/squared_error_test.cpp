// The mean squared error of numbers, its derivative, and what it refuses.
#include <cmath>

#include "emu/net/train/objective.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::squared_error_test {
namespace {

TEST_CASE("squared_error: losses of samples and central differences", "[fast]") {
  const Objective objective = find_objective("squared_error");
  CHECK(objective.target == TargetKind::values);
  const Tensor y = test::random_tensor({3, 4}, 5);
  Targets targets;
  for (int i = 0; i < 12; ++i) targets.values.push_back(0.25f * static_cast<float>(i % 5) - 0.5f);
  Tensor gradient;
  const Classified seen = objective.evaluate(y, targets, &gradient, 2);
  REQUIRE(seen.loss.size() == 3);
  CHECK(seen.counted == 3);
  CHECK(seen.right.empty());
  const auto mean = [&](std::size_t at, double moved) {
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      const double e = double{y.data[i]} + (i == at ? moved : 0) - double{targets.values[i]};
      sum += e * e;
    }
    return sum / 12;
  };
  CHECK((seen.loss[0] + seen.loss[1] + seen.loss[2]) / 3 == Approx(mean(0, 0)).epsilon(1e-12));
  for (std::size_t i = 0; i < 12; ++i) {
    constexpr double kStep = 1e-4;
    const double expected = 2 * (mean(i, kStep) - mean(i, -kStep)) / (2 * kStep);
    CHECK(double{gradient.data[i]} == Approx(expected).epsilon(1e-6).margin(1e-7));
  }
  targets.values.pop_back();
  CHECK_THROWS_WITH(objective.evaluate(y, targets, nullptr, 1),
                    Catch::Contains("squared_error: expected an output of 11 numbers"));
}

}  // namespace
}  // namespace numemu::net::squared_error_test
