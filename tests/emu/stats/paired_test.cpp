// Paired intervals against a published example; Holm's correction.
#include "emu/stats/paired.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"
#include "tests/files.hpp"

namespace paired_test {

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("hours of sleep gained by ten patients: Student 1908", "[fast]") {
  const PairedInterval i = paired_interval({1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4});
  constexpr double kPrinted = 5e-8;
  CHECK(i.n == 10);
  CHECK(i.mean == Approx(1.58).epsilon(1e-14));
  CHECK(std::fabs(i.low - 0.7001142) <= kPrinted);
  CHECK(std::fabs(i.high - 2.4598858) <= kPrinted);
}

TEST_CASE("one difference says nothing of its spread", "[fast]") {
  const PairedInterval i = paired_interval({0.25});
  CHECK(i.n == 1);
  CHECK(i.mean == 0.25);
  CHECK(i.low == -HUGE_VAL);
  CHECK(i.high == HUGE_VAL);
}

TEST_CASE("differences that are all equal show no spread: their interval is not known", "[fast]") {
  for (const std::vector<double>& equal : {std::vector<double>{2, 2}, {0, 0, 0}, {1 - 0.9, 0.1}}) {
    const PairedInterval i = paired_interval(equal);
    CHECK(i.mean == Approx(equal.front()));
    CHECK(i.low == -HUGE_VAL);
    CHECK(i.high == HUGE_VAL);
  }
  CHECK(paired_interval({2, 2, 2.001}).high < 3);
}

TEST_CASE("differences that are NaN are left out and counted", "[fast]") {
  const PairedInterval some = paired_interval({1, NAN, 3, 2}), rest = paired_interval({1, 3, 2});
  CHECK(some.left_out == 1);
  CHECK(some.n == 3);
  CHECK(some.mean == rest.mean);
  CHECK(some.high == rest.high);
  CHECK(rest.left_out == 0);
  const PairedInterval none = paired_interval({NAN, 1}, {2, NAN});
  CHECK(none.left_out == 2);
  CHECK(none.n == 0);
  CHECK(std::isnan(none.mean));
  CHECK(none.high == HUGE_VAL);
}

TEST_CASE("differences of two treatments", "[fast]") {
  const std::vector<double> a = {3, 5, 9}, b = {1, 4, 4};
  const PairedInterval i = paired_interval(a, b), mirrored = paired_interval(b, a);
  CHECK(i.mean == Approx(8 / 3.0));
  CHECK(i.low == -mirrored.high);
  CHECK(i.high == -mirrored.low);
  CHECK(paired_interval({0.1 + 0.2, 2}, {0.3, 1.5}).mean == 0.25);
  CHECK(paired_interval({0.1 + 0.2}, {0.3}).mean == 0);
  CHECK(test::message_of([&] { paired_interval(a, {1}); }) ==
        "paired interval: expected as many values on both sides, found 3 and 1");
  CHECK(test::message_of([] { paired_interval(std::vector<double>{}); }) ==
        "paired interval: expected at least one difference");
}

TEST_CASE("the interval covers the mean of a normal law at 95 % for few seeds", "[fast]") {
  constexpr int kRounds = 4000, kSeeds = 3;
  testing::Draws draws(31);
  int covered = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> x(kSeeds);
    for (double& value : x) value = 1 + draws.normal();
    const PairedInterval i = paired_interval(x);
    covered += i.low <= 1 && 1 <= i.high;
  }
  CHECK(std::fabs(covered / static_cast<double>(kRounds) - 0.95) <
        4 * std::sqrt(0.95 * 0.05 / kRounds));
}

namespace {

TEST_CASE("Holm rejects step by step", "[fast]") {
  // Four tests at 5 %: the limits are 0.0125, 0.0167, 0.025 and 0.05 in ascending order.
  CHECK(holm({0.01, 0.04, 0.03, 0.005}) == std::vector<bool>{true, false, false, true});
  CHECK(holm({0.01, 0.02, 0.016, 0.012}) == std::vector<bool>{true, true, true, true});
  CHECK(holm({0.013, 0.0001, 0.017, 0.2}) == std::vector<bool>{true, true, true, false});
  CHECK(holm({0.02, 0.9}) == std::vector<bool>{true, false});
  CHECK(holm({0.026, 0.9}) == std::vector<bool>{false, false});
}

TEST_CASE("no test and NaN reject nothing", "[fast]") {
  CHECK(holm({}).empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(holm({nan, 0.04}) == std::vector<bool>{false, true});
}

}  // namespace

}  // namespace paired_test
