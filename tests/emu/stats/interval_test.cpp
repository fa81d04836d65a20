// Intervals against published tables.
#include "emu/stats/interval.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace interval_test {

using namespace numemu::stats;

TEST_CASE("Wilson's interval: Newcombe 1998, table I, method 3", "[fast]") {
  constexpr double kPrinted = 0.00005;
  const struct {
    int successes, n;
    double low, high;
  } rows[] = {{81, 263, 0.2553, 0.3662},
              {15, 148, 0.0624, 0.1605},
              {0, 20, 0, 0.1611},
              {1, 29, 0.0061, 0.1718}};
  for (const auto& row : rows) {
    const Interval i = wilson(row.successes, row.n);
    INFO(row.successes << " of " << row.n);
    CHECK(std::abs(i.low - row.low) <= kPrinted);
    CHECK(std::abs(i.high - row.high) <= kPrinted);
  }
}

TEST_CASE("none of n: the exact interval's end, and the rule of three", "[fast]") {
  CHECK(share_of_none(0) == 1);
  CHECK(share_of_none(1) == Approx(0.975).epsilon(1e-14));
  CHECK(share_of_none(10) == Approx(0.3085).margin(5e-5));  // printed in tables of 0 in 10
  // Any larger share shows none with a chance below 2.5 %.
  for (const int n : {7, 100, 10000})
    CHECK(std::pow(1 - share_of_none(n), n) == Approx(0.025).epsilon(1e-10));
}

TEST_CASE("Wilson's interval is mirrored, stays in [0, 1] and solves its equation", "[fast]") {
  for (const int n : {1, 7, 100, 10000}) {
    for (const int k : {0, 1, n / 2, n - 1, n}) {
      const Interval i = wilson(k, n), mirrored = wilson(n - k, n);
      CHECK(i.low == Approx(1 - mirrored.high).margin(1e-15));
      CHECK(i.low >= 0);
      CHECK(i.high <= 1);
      const double p = static_cast<double>(k) / n;
      for (const double end : {i.low, i.high}) {
        if (end <= 0 || end >= 1) continue;
        CHECK(std::abs(p - end) ==
              Approx(1.959963984540054 * std::sqrt(end * (1 - end) / n)).epsilon(1e-10));
      }
    }
  }
  CHECK(wilson(0, 0).low == 0);
  CHECK(wilson(0, 0).high == 1);
}

namespace {

/// Tango (1998): where d is kept by the score test of p1 - p2, by the root of its quadratic
/// equation for the likeliest P(second alone right).
bool tango_keeps(double d, double only1, double only2, double n, double z) {
  const double a = 2 * n, b = -only1 - only2 + (2 * n - only1 + only2) * d,
               c = -only2 * d * (1 - d);
  const double q = (std::sqrt(b * b - 4 * a * c) - b) / (2 * a);
  return std::abs(only1 - only2 - n * d) <= z * std::sqrt(n * (2 * q + d * (1 - d)));
}

/// The chance of k successes in n.
double binomial(int n, int k, double p) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                  k * std::log(p) + (n - k) * std::log1p(-p));
}

}  // namespace

TEST_CASE("paired difference: approval ratings of Agresti 2002, table 10.1", "[fast]") {
  // 1600 people asked twice, 150 and 86 changed their minds: published as (0.021, 0.059).
  const Interval i = paired_difference(150, 86, 1600);
  CHECK(std::abs(i.low - 0.021) <= 0.0005);
  CHECK(std::abs(i.high - 0.059) <= 0.0005);
}

TEST_CASE("paired difference: the ends are where Tango's test stops to keep", "[fast]") {
  constexpr double kStep = 1e-9;
  for (const int n : {1, 5, 44, 400, 10000}) {
    for (const int only1 : {0, 1, 3, n / 3}) {
      for (const int only2 : {0, 1, 2, n / 2}) {
        if (only1 + only2 > n) continue;
        INFO(only1 << " and " << only2 << " of " << n);
        const Interval i = paired_difference(only1, only2, n);
        for (const double sign : {-1.0, 1.0}) {
          const double end = sign < 0 ? i.low : i.high;
          CHECK(tango_keeps(end - sign * kStep, only1, only2, n, kNormal95));
          if (std::abs(end) < 1 - kStep)
            CHECK(!tango_keeps(end + sign * kStep, only1, only2, n, kNormal95));
        }
      }
    }
  }
}

TEST_CASE("paired difference is antisymmetric, and its ends for none in n are in closed form",
          "[fast]") {
  const Interval a = paired_difference(9, 2, 50), b = paired_difference(2, 9, 50);
  CHECK(a.low == Approx(-b.high));
  CHECK(a.high == Approx(-b.low));
  const Interval none = paired_difference(0, 0, 100);
  CHECK(none.high == Approx(kNormal95 * kNormal95 / (100 + kNormal95 * kNormal95)));
  CHECK(none.low == Approx(-none.high));
  CHECK(paired_difference(3, 0, 3).high == 1);
  CHECK(paired_difference(0, 3, 3).low == -1);
  CHECK(paired_difference(0, 0, 0).low == -1);
}

TEST_CASE("a share of another classifier: 0 is Wilson's interval, 1 the difference", "[fast]") {
  for (const PairedAnswers& a :
       {PairedAnswers{4, 3, 2, 10}, {100, 9, 2, 150}, {5, 0, 0, 5}, {0, 0, 0, 7}, {40, 0, 9, 80}}) {
    const Interval alone = paired_share(a, 0, kNormal99),
                   expected = wilson(a.both + a.only1, a.n, kNormal99);
    CHECK(alone.low == Approx(expected.low).margin(1e-12));
    CHECK(alone.high == Approx(expected.high).margin(1e-12));
    const Interval same = paired_share(a, 1, kNormal95),
                   difference = paired_difference(a.only1, a.only2, a.n);
    CHECK(same.low == Approx(difference.low).margin(1e-12));
    CHECK(same.high == Approx(difference.high).margin(1e-12));
  }
  // Over the images themselves: right1 - .9 right2 is .1 four times, 1 thrice, -.9 twice, 0 once.
  const PairedAnswers few{4, 3, 2, 10};
  CHECK(paired_share_variance(few, 0.9) == Approx((4 * .01 + 3 + 2 * .81) / 10 - .16 * .16));
  // Many images: the normal interval of the mean.
  const PairedAnswers many{4000000, 3000000, 2000000, 10000000};
  const Interval i = paired_share(many, 0.9, 2);
  const double half = 2 * std::sqrt(paired_share_variance(many, 0.9) / 1e7);
  CHECK(i.high - 0.16 == Approx(half).epsilon(1e-3));
  CHECK(0.16 - i.low == Approx(half).epsilon(1e-3));
}

TEST_CASE("a share of another classifier: no shares of that mean are likelier", "[fast]") {
  // By trying all shares of a fine grid: the score at an end of the interval has the variance of
  // the likeliest ones.
  const PairedAnswers a{12, 0, 3, 20};
  constexpr double kShare = 0.8;
  const double count[] = {12, 0, 3, 5}, value[] = {1 - kShare, 1, -kShare, 0};
  double mean = 0;
  for (int c = 0; c < 4; ++c) mean += count[c] * value[c] / 20;
  const Interval interval = paired_share(a, kShare, kNormal95);
  for (const double end : {interval.low, interval.high}) {
    double best = -INFINITY, variance = 0;
    constexpr int kGrid = 2000;
    for (int i = 0; i <= kGrid; ++i) {
      for (int j = 0; i + j <= kGrid; ++j) {
        // Two shares are free, two follow from the sum and the mean.
        const double p0 = i / double{kGrid}, p2 = j / double{kGrid},
                     p1 = end - p0 * value[0] - p2 * value[2], p3 = 1 - p0 - p1 - p2;
        if (p1 < 0 || p3 < 0) continue;
        const double p[] = {p0, p1, p2, p3};
        double likelihood = 0, squares = 0;
        for (int c = 0; c < 4; ++c) {
          if (count[c] > 0) likelihood += count[c] * std::log(p[c]);
          squares += p[c] * value[c] * value[c];
        }
        if (likelihood > best) {
          best = likelihood;
          variance = squares - end * end;
        }
      }
    }
    CHECK(std::abs(mean - end) ==
          Approx(kNormal95 * std::sqrt(variance / 20)).epsilon(3e-3));  // of the grid
  }
}

TEST_CASE("paired intervals cover a loss that goes one way", "[fast]") {
  // 0.5 % of the answers get lost and none is gained: the interval has the loss with 95 %, within
  // what the steps of a count take from any interval.
  for (const int n : {200, 400, 1000, 4000}) {
    constexpr double kLoss = 0.005;
    double covered = 0;
    for (int k = 0; k <= 100; ++k) {
      const Interval i = paired_difference(0, k, n);
      if (i.low <= -kLoss && -kLoss <= i.high) covered += binomial(n, k, kLoss);
    }
    INFO(n);
    CHECK(covered >= 0.94);
  }
  // A loss of exactly what a gate of 99 % allows passes with at most 0.5 %, one tail of 99 %.
  for (const int n : {266, 400, 1000, 4000, 10000}) {
    constexpr double kRight = 0.96, kLoss = 0.01 * kRight;
    double passed = 0;
    for (int k = 0; k <= n / 20; ++k) {
      const int both = static_cast<int>(std::lround(kRight * n)) - k;
      if (paired_share({both, 0, k, n}, 0.99, kNormal99).low >= 0) passed += binomial(n, k, kLoss);
    }
    INFO(n);
    CHECK(passed <= 0.005);
  }
}

TEST_CASE("the score of no difference is McNemar's, and the ends of an interval have z", "[fast]") {
  // McNemar (1947): (b - c) / sqrt(b + c), whatever n.
  for (const PairedAnswers& a : {PairedAnswers{150, 10, 0, 200}, {1900, 6, 0, 2000}, {0, 9, 2, 50}})
    CHECK(paired_score(a, 1, 0) == Approx(static_cast<double>(a.only1 - a.only2) /
                                          std::sqrt(static_cast<double>(a.only1 + a.only2))));
  const PairedAnswers a{7880, 200, 240, 10000};
  const Interval i = paired_share(a, 0.99, kNormal99);
  CHECK(paired_score(a, 0.99, i.low) == Approx(kNormal99));
  CHECK(paired_score(a, 0.99, i.high) == Approx(-kNormal99));
}

TEST_CASE("images that a decision needs: ResNet-20 at 81.03 %, a drop of a hundredth", "[fast]") {
  const double p = 0.8103, delta = 0.01 * p;
  const double constant = images_needed(p * (1 - p), delta, kNormal99);
  CHECK(std::round(constant) == 15533);
  CHECK(std::round(2 * constant) == 31066);  // both runs vary
  const double d = 0.05;                     // share of discordant images
  CHECK(std::round(images_needed(d - delta * delta, delta, kNormal99)) == 5046);
}

TEST_CASE("intervals of as many samples again with the same shares", "[fast]") {
  const PairedAnswers few{4, 3, 2, 10}, many{40, 30, 20, 100};
  CHECK(paired_share(few, 0.9, 2, 10).low == Approx(paired_share(many, 0.9, 2).low));
  CHECK(paired_share(few, 0.9, 2, 10).high == Approx(paired_share(many, 0.9, 2).high));
  CHECK(wilson(3, 10, kNormal99, 10).low == Approx(wilson(30, 100, kNormal99).low));
}

TEST_CASE("the least n that decides, from either side", "[fast]") {
  for (const std::int64_t least : {1, 2, 17, 1000, 12345}) {
    for (const std::int64_t from : {1, 16, 17, 18, 20000}) {
      CHECK(least_deciding([&](std::int64_t n) { return n >= least; }, from, 20000) == least);
    }
  }
  CHECK(!least_deciding([](std::int64_t) { return false; }, 7, 1'000'000'000'000'000));
}

}  // namespace interval_test
