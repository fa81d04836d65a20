// The Kolmogorov-Smirnov distance on samples small enough to work out by hand, and its law on large
// ones.
#include "emu/stats/kolmogorov.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("distances by hand: steps, ties and the jump at zero", "[fast]") {
  const auto unit = uniform_density(0, 1);
  CHECK(ks_distance({0.5F}, *unit) == 0.5);
  CHECK(ks_distance({0.25F, 0.75F}, *unit) == 0.25);
  CHECK(ks_distance({0.25F, 0.25F, 0.25F, 0.75F}, *unit) == 0.5);  // 3/4 at 0.25
  CHECK(ks_distance({2.0F}, *unit) == 1);
  CHECK(ks_distance({0.0F, 0.0F}, *unit) == 1);

  const auto half = with_zero_mass(uniform_density(-1, 1), 0.5);  // F(0-) = 1/4, F(0) = 3/4
  CHECK(ks_distance({0.0F, 0.0F}, *half) == 0.25);
  CHECK(ks_distance({-0.5F, 0.0F, -0.0F, 0.5F}, *half) == 0.125);
  CHECK(ks_distance({-0.5F, 0.5F}, *half) == 0.375);
  CHECK(ks_distance({0.5F}, *half) == Approx(0.875));
  // No zero in the sample: F_n = 1/2 between -1 and 1 and F jumps from 1/10 to 9/10 inside.
  CHECK(ks_distance({-1.0F, 1.0F}, *with_zero_mass(uniform_density(-1, 1), 0.8)) == Approx(0.5));
  CHECK(ks_distance({0.9F, 1.0F}, *with_zero_mass(uniform_density(-1, 1), 0.8)) == Approx(0.99));
}

TEST_CASE("the distance of a sample from its own law exceeds 1.36 / sqrt(n) one time in twenty",
          "[fast]") {
  testing::Draws draws(11);
  constexpr int kTrials = 2000, kCount = 500;
  int exceeded = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<float> x = testing::draw(kCount, [&] { return draws.normal(); });
    std::sort(x.begin(), x.end());
    if (ks_distance(x, *normal_density(0, 1)) > 1.36 / std::sqrt(double{kCount})) ++exceeded;
  }
  // Expected 0.049 asymptotically, slightly less at n = 500; four standard errors of a proportion
  // either way.
  const double se = std::sqrt(0.049 * 0.951 / kTrials);
  CHECK(std::abs(exceeded / double{kTrials} - 0.046) <= 4 * se);
  CHECK(ks_threshold(10000) == Approx(0.0436));
}
