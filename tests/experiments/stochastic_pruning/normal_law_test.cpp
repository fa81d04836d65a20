// The portable normal law against the C library's error function and its own asymptotes.
#include "experiments/stochastic_pruning/normal_law.hpp"

#include <cmath>

#include "formats/analysis/gaussian.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments::stochastic_pruning;

TEST_CASE("probabilities are those of erfc", "[fast]") {
  int compared = 0;
  for (double z = -36.9; z < 9; z += 0.0173) {
    // The square of z is rounded before its exponential is taken.
    const double tolerance = 1e-13 + 1e-16 * z * z, expected = gaussian::cdf(z);
    CHECK(std::fabs(normal::probability(z) / expected - 1) < tolerance);
    CHECK(std::fabs(normal::density(z) / gaussian::pdf(z) - 1) < tolerance);
    ++compared;
  }
  CHECK(compared > 2000);
  CHECK(normal::probability(-HUGE_VAL) == 0);
  CHECK(normal::probability(HUGE_VAL) == 1);
  CHECK(normal::probability(0) == 0.5);
  CHECK(normal::density(HUGE_VAL) == 0);
}

TEST_CASE("moments of the middle of the law", "[fast]") {
  constexpr double kTolerance = 1e-12;
  for (double t = 0.5; t < 12; t += 0.0731) {
    const double within = std::erf(t / std::sqrt(2.0));
    CHECK(normal::within(t) == Approx(within).epsilon(kTolerance));
    CHECK(normal::first_moment_within(t) ==
          Approx(2 * (gaussian::pdf(0) - gaussian::pdf(t))).epsilon(kTolerance));
    CHECK(normal::second_moment_within(t) ==
          Approx(within - 2 * t * gaussian::pdf(t)).epsilon(kTolerance));
  }
  // 2 phi(0) t^(k+1) / (k+1) to first order, the next term t^2 times smaller.
  for (const double t : {1e-4, 1e-9, 1e-60}) {
    const double density = 2 * gaussian::pdf(0), tolerance = t * t + kTolerance;
    CHECK(normal::within(t) == Approx(density * t).epsilon(tolerance));
    CHECK(normal::first_moment_within(t) == Approx(density * t * t / 2).epsilon(tolerance));
    CHECK(normal::second_moment_within(t) == Approx(density * t * t * t / 3).epsilon(tolerance));
  }
  CHECK(normal::within(0) == 0);
  CHECK(normal::first_moment_within(0) == 0);
  CHECK(normal::second_moment_within(0) == 0);
}
