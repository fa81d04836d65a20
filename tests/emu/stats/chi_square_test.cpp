// The chi-square test against a worked example and its own law.
#include "emu/stats/chi_square.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"
#include "tests/files.hpp"

namespace chi_square_test {

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("the chi-square statistic of 60 throws of a die", "[fast]") {
  const ChiSquare die = uniform_chi_square({5, 8, 9, 8, 10, 20});
  CHECK(die.statistic == Approx(13.4).epsilon(1e-15));
  CHECK(die.degrees == 5);
  // Tabulated: 11.070 at 5 %, 15.086 at 1 %.
  CHECK(die.p < 0.05);
  CHECK(die.p > 0.01);
  CHECK(uniform_chi_square({20, 10, 8, 9, 8, 5}).statistic == die.statistic);
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
  // What cannot happen.
  CHECK(chi_square({7}, {1.0}, 1).p == 0);
  CHECK(chi_square({7, 1}, {1.0, 0.0}).p == 0);
  CHECK(chi_square({60, 40, 0}, {0.5, 0.5, 0.0}).p == chi_square({60, 40}, {0.5, 0.5}).p);
}

TEST_CASE("rare outcomes are taken together until five are expected", "[fast]") {
  // 0.2 expected and 2 seen: rare, but not as rare as the tail of 16.2 at one degree, 5.7e-5. The
  // chance is 1 - 0.9998^1000 (1 + 0.2 / 0.9998) = 0.0175.
  const ChiSquare none = chi_square({998}, {0.9998}, 2);
  CHECK(none.degrees == 0);
  CHECK(none.p == 1);
  // With a cell beside them they are 0.2 + 9.8 of 1000.
  const ChiSquare joined = chi_square({500, 488, 10}, {0.5, 0.49, 0.0098}, 2);
  CHECK(joined.degrees == 2);
  CHECK(joined.statistic == Approx(4 / 490.0 + 4 / 10.0).epsilon(1e-9));
  // Merging continues until it is enough: 1 + 2 + 3, then no more.
  const ChiSquare few = chi_square({994, 3, 2, 1}, {0.994, 0.003, 0.002, 0.001});
  CHECK(few.degrees == 1);
  CHECK(few.statistic == Approx(0).margin(1e-20));
  // The order given does not matter where probabilities differ.
  CHECK(chi_square({10, 488, 500}, {0.0098, 0.49, 0.5}, 2).statistic ==
        Approx(joined.statistic).epsilon(1e-12));
}

TEST_CASE("with rare others a true law is rejected as often as the level says", "[fast]") {
  constexpr int kRounds = 4000, kDraws = 1000;
  const std::vector<double> law = {0.4, 0.3, 0.2, 0.09, 0.0098};  // others: 0.0002
  testing::Draws draws(31);
  const double levels[] = {0.001, 0.01, 0.05, 0.5};
  int below[4] = {};
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::int64_t> counts(law.size() + 1);
    for (int i = 0; i < kDraws; ++i) {
      double u = draws.uniform();
      std::size_t outcome = 0;
      while (outcome < law.size() && u >= law[outcome]) u -= law[outcome++];
      ++counts[outcome];
    }
    const std::int64_t others = counts.back();
    counts.pop_back();
    const double p = chi_square(counts, law, others).p;
    for (int l = 0; l < 4; ++l) below[l] += p <= levels[l];
  }
  for (int l = 0; l < 4; ++l) {
    INFO("level " << levels[l]);
    // 4 standard errors; the law of a statistic whose least cell expects 10 is a tenth of the level
    // away from chi-squared, and the p-value is discrete by less than a hundredth at 0.5.
    const double slack = l == 3 ? 0.01 : 0.1 * levels[l];
    CHECK(std::fabs(below[l] / static_cast<double>(kRounds) - levels[l]) <
          4 * std::sqrt(levels[l] * (1 - levels[l]) / kRounds) + slack);
  }
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
  CHECK(test::message_of([] {
          chi_square({1}, {0.5, 0.5});
        }) == "chi-square: expected as many probabilities as counts");
  CHECK(test::message_of([] {
          chi_square({1, -1}, {0.5, 0.5});
        }) == "chi-square: expected counts and probabilities of at least 0");
  CHECK(test::message_of([] { chi_square({0}, {1.0}); }) ==
        "chi-square: expected at least one draw");
}

}  // namespace chi_square_test
