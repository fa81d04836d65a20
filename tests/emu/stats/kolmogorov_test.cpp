// The Kolmogorov-Smirnov distance on samples small enough to work out by hand, and its law on large
// ones.
#include <algorithm>
#include <cmath>

#include "emu/stats/fit.hpp"
#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"

namespace kolmogorov_test {

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

namespace {

/// At every value of the sample, from its left and its right, and around a jump at zero.
double plain_distance(const std::vector<float>& sorted, const Density& density) {
  const double n = static_cast<double>(sorted.size()), jump = density.zero_mass();
  const auto share = [&](auto at) { return static_cast<double>(at - sorted.begin()) / n; };
  std::vector<float> places = sorted;
  if (jump > 0) places.push_back(0);
  double distance = 0;
  for (const float value : places) {
    const double right = density.cdf(value), left = value == 0 ? right - jump : right;
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), value);
    const auto upto = std::upper_bound(sorted.begin(), sorted.end(), value);
    distance = std::max({distance, std::abs(share(below) - left), std::abs(share(upto) - right)});
  }
  return distance;
}

}  // namespace

TEST_CASE("the distance has the bits of one taken at every value", "[fast]") {
  testing::Draws draws(12);
  for (int trial = 0; trial < 300; ++trial) {
    const int count = 1 + trial * 7;
    // Ties, zeros of both signs and samples far from the law.
    const double step = trial % 3 == 0 ? 0.25 : 1e-6, shift = trial % 5 == 0 ? 0.3 : 0;
    std::vector<float> x = testing::draw(count, [&] {
      const double drawn = draws.normal() + shift;
      return trial % 4 == 1 && drawn < 0 ? -0.0 : std::round(drawn / step) * step;
    });
    std::sort(x.begin(), x.end());
    const auto normal = normal_density(0.01, 1.1);
    const auto massed = with_zero_mass(lognormal_density(-0.5, 1, 0.6), 0.4);
    CHECK(ks_distance(x, *normal) == plain_distance(x, *normal));
    CHECK(ks_distance(x, *massed) == plain_distance(x, *massed));
  }
}

}  // namespace kolmogorov_test
