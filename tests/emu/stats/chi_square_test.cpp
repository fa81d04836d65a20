// The chi-square test against a worked example, closed forms and its own law.
#include "emu/stats/chi_square.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("the chi-square statistic of 60 throws of a die", "[fast]") {
  const ChiSquare die = uniform_chi_square({5, 8, 9, 8, 10, 20});
  CHECK(die.statistic == Approx(13.4).epsilon(1e-15));
  CHECK(die.degrees == 5);
  // Tabulated: 11.070 at 5 %, 15.086 at 1 %.
  CHECK(die.p < 0.05);
  CHECK(die.p > 0.01);
  CHECK(chi_square_tail(11.0704976935, 5) == Approx(0.05).epsilon(1e-9));
  CHECK(uniform_chi_square({20, 10, 8, 9, 8, 5}).statistic == die.statistic);
}

TEST_CASE("the tail is an exponential for two degrees, a normal tail for one", "[fast]") {
  for (const double x : {0.01, 1.0, 7.5, 80.0}) {
    CHECK(chi_square_tail(x, 2) == Approx(std::exp(-x / 2)).epsilon(1e-12));
    CHECK(chi_square_tail(x, 1) == Approx(std::erfc(std::sqrt(x / 2))).epsilon(1e-12));
  }
  CHECK(chi_square_tail(0, 3) == 1);
}

TEST_CASE("even counts fit wholly, one outcome alone always, a lone favourite never", "[fast]") {
  const ChiSquare even = uniform_chi_square(std::vector<std::int64_t>(12870, 1000));
  CHECK(even.statistic == 0);
  CHECK(even.p == 1);
  const ChiSquare one = uniform_chi_square({7});
  CHECK(one.degrees == 0);
  CHECK(one.p == 1);
  const ChiSquare lone = uniform_chi_square({100, 0, 0});
  CHECK(lone.statistic == Approx(200));
  CHECK(lone.p < 1e-40);
  // Large counts stay exact: the statistic is 2 (2 d)^2 / 2 n for halves n +- d.
  const std::int64_t half = 1'000'000'000;
  CHECK(uniform_chi_square({half + 1, half - 1}).statistic == Approx(2.0 / half).epsilon(1e-15));
}

TEST_CASE("peas of Mendel 1866: 315, 101, 108 and 32 where 9:3:3:1 is expected", "[fast]") {
  const ChiSquare peas = chi_square({315, 101, 108, 32}, {9 / 16., 3 / 16., 3 / 16., 1 / 16.});
  CHECK(peas.degrees == 3);
  // (2.25^2 / 312.75 + 3.25^2 / 104.25 + 3.75^2 / 104.25 + 2.75^2 / 34.75)
  CHECK(peas.statistic == Approx(0.470024).epsilon(1e-5));
  CHECK(peas.p == Approx(0.9254).epsilon(1e-3));
  // The last given as what is left, or left out of the list.
  const ChiSquare left = chi_square({315, 101, 108}, {9 / 16., 3 / 16., 3 / 16.}, 32);
  CHECK(left.statistic == Approx(peas.statistic).epsilon(1e-12));
  CHECK(left.degrees == 3);
  const ChiSquare even = chi_square({5, 8, 9, 8, 10, 20}, std::vector<double>(6, 1 / 6.0));
  CHECK(even.statistic == Approx(13.4).epsilon(1e-12));
  CHECK(even.degrees == 5);
  // Outcomes expected fewer than 5 times are one: 10 seen, 2 + 3 expected.
  const ChiSquare rare = chi_square({60, 30, 6, 4}, {0.5, 0.45, 0.02, 0.03});
  CHECK(rare.degrees == 2);
  CHECK(rare.statistic == Approx(2 + 5 + 5.0).epsilon(1e-12));
  CHECK(chi_square({7}, {1.0}).p == 1);
  CHECK(chi_square({7}, {1.0}, 1).p < 1e-9);  // what cannot happen
}

TEST_CASE("p-values of uniform draws are uniform", "[fast]") {
  constexpr int kRounds = 1000, kDraws = 400, kOutcomes = 6;
  testing::Draws draws(12);
  int below[3] = {};
  const double levels[3] = {0.05, 0.5, 0.95};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::int64_t> counts(kOutcomes);
    for (int i = 0; i < kDraws; ++i)
      ++counts[static_cast<std::size_t>(draws.uniform() * kOutcomes)];
    const double p = uniform_chi_square(counts).p;
    for (int l = 0; l < 3; ++l) below[l] += p <= levels[l];
  }
  for (int l = 0; l < 3; ++l) {
    // One point beside 4 standard errors: the statistic is discrete.
    CHECK(std::fabs(below[l] / static_cast<double>(kRounds) - levels[l]) <
          4 * std::sqrt(levels[l] * (1 - levels[l]) / kRounds) + 0.01);
  }
}

TEST_CASE("counts that are none are refused", "[fast]") {
  CHECK(test::message_of([] { uniform_chi_square({}); }) == "chi-square: expected 1 to 2^31 draws");
  CHECK(test::message_of([] {
          uniform_chi_square({0, 0});
        }) == "chi-square: expected 1 to 2^31 draws");
  CHECK(test::message_of([] {
          uniform_chi_square({1, -1});
        }) == "chi-square: expected counts from 0 to 2^31");
}
