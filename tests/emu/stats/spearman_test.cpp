// Rank correlation against cases worked by hand, with and without ties, and of noisy figures.
#include "emu/stats/spearman.hpp"

#include <cmath>

#include "emu/stats/resampling.hpp"
#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"
#include "tests/files.hpp"

namespace spearman_test {

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("equal values share the mean of their ranks", "[fast]") {
  CHECK(mid_ranks({}).empty());
  CHECK(mid_ranks({7}) == std::vector<double>{1});
  CHECK(mid_ranks({3, 1, 2}) == std::vector<double>{3, 1, 2});
  CHECK(mid_ranks({10, 20, 20, 5}) == std::vector<double>{2, 3.5, 3.5, 1});
  CHECK(mid_ranks({4, 4, 4}) == std::vector<double>{2, 2, 2});
  CHECK(mid_ranks({-0.0, 0.0, -1}) == std::vector<double>{2.5, 2.5, 1});
  CHECK(mid_ranks({HUGE_VAL, 1, -HUGE_VAL}) == std::vector<double>{3, 2, 1});
}

TEST_CASE("Spearman without ties is 1 - 6 sum d^2 / (n (n^2 - 1))", "[fast]") {
  CHECK(spearman({1, 2, 3, 4}, {10, 20, 30, 40}) == 1);
  CHECK(spearman({1, 2, 3, 4}, {4, 3, 2, 1}) == -1);
  // d = 0, 1, 1, 0: 1 - 6 * 2 / 60.
  CHECK(spearman({1, 2, 3, 4}, {1, 3, 2, 4}) == Approx(0.8).epsilon(1e-15));
  // A monotone map changes nothing, not even the last bit.
  testing::Draws draws(3);
  std::vector<double> x(50), y(50), cubed(50);
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = draws.normal();
    y[i] = x[i] + draws.normal();
    cubed[i] = y[i] * y[i] * y[i];
  }
  const std::vector<double> a = mid_ranks(x), b = mid_ranks(y);
  for (std::size_t i = 0; i < x.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  CHECK(spearman(x, y) == Approx(1 - 6 * squares / (50 * (2500 - 1))).epsilon(1e-14));
  CHECK(spearman(x, y) == spearman(x, cubed));
  CHECK(spearman(x, y) == spearman(y, x));
}

TEST_CASE("Spearman with ties is the correlation of mid-ranks", "[fast]") {
  // Ranks 1 2 3 4 5 and 1 2 3.5 5 3.5: 8 / sqrt(10 * 9.5).
  CHECK(spearman({1, 2, 3, 4, 5}, {5, 6, 7, 8, 7}) == Approx(8 / std::sqrt(95.0)).epsilon(1e-15));
  // Ranks 1.5 1.5 3.5 3.5 on both sides agree wholly; crossed they do not agree at all.
  CHECK(spearman({0, 0, 1, 1}, {5, 5, 9, 9}) == 1);
  CHECK(spearman({0, 0, 1, 1}, {5, 9, 5, 9}) == 0);
}

TEST_CASE("what has no correlation is NaN, what has no order is refused", "[fast]") {
  CHECK(std::isnan(spearman({}, {})));
  CHECK(std::isnan(spearman({1}, {2})));
  CHECK(std::isnan(spearman({1, 1, 1}, {1, 2, 3})));
  CHECK(test::message_of([] {
          spearman({1, 2}, {1});
        }) == "rank correlation: expected as many values on both sides, found 2 and 1");
  CHECK(test::message_of([] {
          spearman({1, NAN}, {1, 2});
        }) == "rank correlation: expected values that have an order, found NaN");
}

TEST_CASE("the interval of a rank correlation", "[fast]") {
  // Nothing but agreement can be drawn from pairs that agree.
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8};
  Interval i = spearman_interval(x, x, 1);
  CHECK(i.low == 1);
  CHECK(i.high == 1);
  // One pair has no correlation however it is drawn: nothing is known.
  i = spearman_interval({1}, {1}, 1, 50);
  CHECK(i.low == -1);
  CHECK(i.high == 1);
  // A function of the seed.
  const std::vector<double> y = {2, 1, 4, 3, 6, 8, 5, 7};
  i = spearman_interval(x, y, 5);
  CHECK(i.low < spearman(x, y));
  CHECK(i.high > spearman(x, y));
  CHECK(i.low == spearman_interval(x, y, 5).low);
  CHECK((i.low != spearman_interval(x, y, 6).low || i.high != spearman_interval(x, y, 6).high));
}

TEST_CASE("the interval narrows to the asymptotic one of independent pairs", "[fast]") {
  // Under independence the correlation has variance 1 / (n - 1).
  constexpr int kPairs = 400;
  testing::Draws draws(17);
  std::vector<double> x(kPairs), y(kPairs);
  for (int i = 0; i < kPairs; ++i) {
    x[i] = draws.normal();
    y[i] = draws.normal();
  }
  const Interval i = spearman_interval(x, y, 2, 999);
  const double width = 2 * 1.96 / std::sqrt(kPairs - 1.0);
  // The ends of 999 resamples are known to about 5 % of the width each, and its estimate from one
  // sample of 400 to about as much.
  CHECK(i.high - i.low == Approx(width).epsilon(0.25));
  CHECK(std::fabs(spearman(x, y)) < 4 / std::sqrt(kPairs - 1.0));
}

TEST_CASE("Fisher's interval of a rank correlation: values worked by hand", "[fast]") {
  // z = 0.549306, standard error sqrt(1.125 / 27) = 0.204124: 0.549306 -+ 0.400076.
  Interval i = spearman_interval(0.5, 30);
  CHECK(i.low == Approx(0.148133).margin(2e-6));
  CHECK(i.high == Approx(0.739503).margin(2e-6));
  // z = 0, standard error 1 / sqrt(97).
  i = spearman_interval(0.0, 100);
  CHECK(i.high == Approx(std::tanh(1.959964 / std::sqrt(97.0))).epsilon(1e-6));
  CHECK(i.low == -i.high);
  const Interval positive = spearman_interval(0.8, 11), negative = spearman_interval(-0.8, 11);
  CHECK(positive.low == -negative.high);
  CHECK(positive.high == -negative.low);
}

TEST_CASE("pairs that agree wholly are no proof that all would", "[fast]") {
  // 11 pairs: rho is taken as 1 - 6 / 1320, z = 3.042250 less 1.959964 sqrt(1.495465 / 8).
  const Interval i = spearman_interval(1.0, 11);
  CHECK(i.low == Approx(std::tanh(3.042250 - 0.847405)).margin(1e-5));
  CHECK(i.high == 1);
  CHECK(spearman_interval(-1.0, 11).low == -1);
  CHECK(spearman_interval(-1.0, 11).high == -i.low);
  // Ties can put rho between the last two steps.
  const Interval near = spearman_interval(0.998, 11);
  CHECK(near.low == i.low);
  CHECK(near.high >= 0.998);
  // More pairs, narrower; less than any bound that the next order of them meets.
  CHECK(spearman_interval(1.0, 20).low > i.low);
  CHECK(i.low < 1 - 12 / 1320.0);
  CHECK(spearman_interval(1.0, 4).low < 0.8);
  for (const std::int64_t n : {0, 1, 3}) {
    CHECK(spearman_interval(1.0, n).low == -1);
    CHECK(spearman_interval(1.0, n).high == 1);
  }
  CHECK(spearman_interval(NAN, 20).low == -1);
  CHECK(spearman_interval(NAN, 20).high == 1);
  CHECK_THAT(test::message_of([] { spearman_interval(1.5, 20); }),
             Catch::StartsWith("rank correlation: expected one in [-1, 1]"));
}

TEST_CASE("Fisher's interval holds the true rank correlation 95 times in 100", "[fast]") {
  // Of normal pairs with correlation r the rank correlation is 6 / pi asin(r / 2) (Pearson 1907).
  constexpr int kRounds = 1000, kPairs = 30;
  for (const double r : {0.0, 0.5, 0.8}) {
    const double rho = 6 / M_PI * std::asin(r / 2);
    testing::Draws draws(41);
    int held = 0;
    std::vector<double> x(kPairs), y(kPairs);
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < kPairs; ++i) {
        x[i] = draws.normal();
        y[i] = r * x[i] + std::sqrt(1 - r * r) * draws.normal();
      }
      const Interval interval = spearman_interval(spearman(x, y), kPairs);
      held += interval.low <= rho && rho <= interval.high;
    }
    INFO("correlation " << r << " held " << held);
    // 4 standard errors, and a point that the formula may be off at thirty pairs.
    CHECK(std::fabs(held / static_cast<double>(kRounds) - 0.95) <
          4 * std::sqrt(0.95 * 0.05 / kRounds) + 0.01);
  }
}

TEST_CASE("expected shares and correlations", "[fast]") {
  // Two places for three figures, one of which is certain.
  const std::vector<Moments> figures = {{0, 1}, {0, 1}, {100, 1}};
  CHECK(expected_share(figures, {1, 0, 0}, 2) == Approx(0.5));
  CHECK(expected_share(figures, {0, 0, 1}, 2) == Approx(1));
  CHECK(share_of_top({1, 3, 2, 3}, {0, 1, 0, 1}, 1) == 0.5);
  CHECK(share_of_top({1, 3, 2, 3}, {1, 0, 0, 1}, 2) == 0.5);
  // Without noise the order of the means is certain.
  const std::vector<double> exact = {1, 5, 3, 2};
  std::vector<Moments> certain;
  for (const double x : {2.0, 3.0, 4.0, 1.0}) certain.push_back({x, 0});
  CHECK(expected_correlation(exact, certain) == Approx(spearman(exact, {2, 3, 4, 1})));
  // Two figures: P(X > Y) = Phi(1) is right, so that 2 Phi(1) - 1 is expected.
  CHECK(expected_correlation({1, 2}, {{0, 0.5}, {1, 0.5}}) == Approx(std::erf(1 / std::sqrt(2.0))));
}

}  // namespace spearman_test
