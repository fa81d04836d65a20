// Intervals against published tables.
#include "emu/stats/interval.hpp"

#include <cmath>

#include "tests/catch.hpp"

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

TEST_CASE("paired difference: approval ratings of Agresti 2002, table 10.1", "[fast]") {
  // 1600 people asked twice, 150 and 86 changed their minds: published as (0.021, 0.059).
  const Interval i = paired_difference(150, 86, 1600);
  CHECK(std::abs(i.low - 0.021) <= 0.0005);
  CHECK(std::abs(i.high - 0.059) <= 0.0005);
  CHECK((i.low + i.high) / 2 == Approx(64.0 / 1602));
}

TEST_CASE(
    "paired difference is antisymmetric, has width without discordant pairs and stays in [-1, 1]",
    "[fast]") {
  const Interval a = paired_difference(9, 2, 50), b = paired_difference(2, 9, 50);
  CHECK(a.low == Approx(-b.high));
  CHECK(a.high == Approx(-b.low));
  const Interval none = paired_difference(0, 0, 100);
  CHECK(none.low == Approx(-1.959963984540054 / 102));
  CHECK(none.high == -none.low);
  CHECK(paired_difference(3, 0, 3).high <= 1);
  CHECK(paired_difference(0, 3, 3).low >= -1);
}

TEST_CASE("a share of another classifier: the difference is its case 1", "[fast]") {
  // By hand: (4, 3, 2) of 10 images at share .9 with half a count more in each cell: sum
  // .1 4.5 + 3.5 - .9 2.5 = 1.7, squares .01 4.5 + 3.5 + .81 2.5 = 5.57, over 12.
  const PairedAnswers few{4, 3, 2, 10};
  const Interval i = paired_share(few, 0.9, 2);
  CHECK(i.low == Approx((1.7 - 2 * std::sqrt(5.57 - 1.7 * 1.7 / 12)) / 12));
  CHECK(i.high == Approx((1.7 + 2 * std::sqrt(5.57 - 1.7 * 1.7 / 12)) / 12));
  const Interval same = paired_share({100, 9, 2, 150}, 1, kNormal95),
                 difference = paired_difference(9, 2, 150);
  CHECK(same.low == difference.low);
  CHECK(same.high == difference.high);
  // Over the images themselves: right1 - .9 right2 is .1 four times, 1 thrice, -.9 twice, 0 once.
  CHECK(paired_share_variance(few, 0.9) == Approx((4 * .01 + 3 + 2 * .81) / 10 - .16 * .16));
  CHECK(wilson(30, 100, kNormal99).low < wilson(30, 100).low);
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
