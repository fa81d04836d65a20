// Entropy estimates against laws whose entropy is known.
#include "emu/stats/entropy.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"
#include "tests/files.hpp"

namespace entropy_test {

using namespace numemu;
using namespace numemu::stats;

namespace {

/// Counts of n draws from outcomes with these probabilities.
std::vector<std::int64_t> draw_counts(const std::vector<double>& law, int n,
                                      testing::Draws& draws) {
  std::vector<std::int64_t> counts(law.size());
  for (int i = 0; i < n; ++i) {
    double u = draws.uniform();
    std::size_t outcome = 0;
    while (outcome + 1 < law.size() && u >= law[outcome]) u -= law[outcome++];
    ++counts[outcome];
  }
  return counts;
}

double entropy_of(const std::vector<double>& law) {
  double bits = 0;
  for (const double p : law) bits -= p * std::log2(p);
  return bits;
}

}  // namespace

TEST_CASE("entropy of frequencies that are exact", "[fast]") {
  Entropy e = entropy({4, 2, 0, 1, 1});
  CHECK(e.n == 8);
  CHECK(e.distinct == 4);
  CHECK(e.plug_in == 1.75);
  CHECK(e.corrected == Approx(1.75 + 3 / (16 * std::log(2.0))).epsilon(1e-15));
  CHECK(e.effective() == Approx(std::exp2(e.corrected)));
  CHECK(e.coverage == 1 - 2.0 / 8);
  // sum p log2^2 p - H^2 = (0.5 + 1 + 2 * 9 / 8) - 1.75^2.
  const double ln2 = std::log(2.0);
  const double variance = (3.75 - 1.75 * 1.75) / 8 + 3 / (2 * 64 * ln2 * ln2);
  CHECK((e.interval.high - e.corrected) ==
        Approx(1.959963984540054 * std::sqrt(variance)).epsilon(1e-12));

  e = entropy({0, 12, 0});
  CHECK(e.plug_in == 0);
  CHECK(e.corrected == 0);
  CHECK(e.interval.low == 0);
  CHECK(e.interval.high == 0);
  CHECK(e.effective() == 1);
  CHECK(e.coverage == 1);
  CHECK(entropy(std::vector<std::int64_t>(1024, 3)).plug_in == 10);
}

TEST_CASE("entropy does not depend on the order of the counts", "[fast]") {
  testing::Draws draws(8);
  std::vector<std::int64_t> counts(1000);
  for (std::int64_t& count : counts) count = static_cast<std::int64_t>(draws.uniform() * 50);
  const Entropy e = entropy(counts);
  std::reverse(counts.begin(), counts.end());
  const Entropy reversed = entropy(counts);
  CHECK(e.plug_in == reversed.plug_in);
  CHECK(e.interval.low == reversed.interval.low);
}

TEST_CASE("Miller and Madow's correction takes the bias away, the interval covers", "[fast]") {
  const std::vector<std::vector<double>> laws = {
      {0.5, 0.25, 0.125, 0.125}, {0.9, 0.1}, std::vector<double>(20, 0.05)};
  constexpr int kDraws = 500, kRounds = 400;
  testing::Draws draws(21);
  for (const std::vector<double>& law : laws) {
    const double truth = entropy_of(law);
    double plug_in = 0, corrected = 0, squares = 0;
    int covered = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Entropy e = entropy(draw_counts(law, kDraws, draws));
      plug_in += e.plug_in / kRounds;
      corrected += e.corrected / kRounds;
      squares += (e.corrected - truth) * (e.corrected - truth) / kRounds;
      covered += e.interval.low <= truth && truth <= e.interval.high;
    }
    INFO("outcomes " << law.size());
    // What is left of the bias is of order 1 / n^2.
    const double noise = 4 * std::sqrt(squares / kRounds);
    CHECK(std::fabs(corrected - truth) < noise + 1.0 / kDraws / 10);
    CHECK(plug_in < corrected);
    // The law of the estimate is skewed where p is flat: 2 points beside 4 standard errors.
    CHECK(std::fabs(covered / static_cast<double>(kRounds) - 0.95) <
          4 * std::sqrt(0.95 * 0.05 / kRounds) + 0.02);
  }
}

TEST_CASE("collisions see far more outcomes than there are draws", "[fast]") {
  // Uniform over 2^20 outcomes, 2^13 draws: 32 pairs agree on average.
  constexpr int kOutcomes = 1 << 20, kDraws = 1 << 13;
  testing::Draws draws(5);
  std::vector<std::int64_t> counts(kOutcomes);
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(draws.uniform() * kOutcomes)];
  const CollisionEntropy e = collision_entropy(counts);
  CHECK(e.n == kDraws);
  // 4 standard errors of a Poisson number of 32, as bits.
  CHECK(std::fabs(e.bits - 20) < 4 / std::sqrt(32.0) / std::log(2.0));
  CHECK(e.interval.low < 20);
  CHECK(e.interval.high > 20);
  CHECK(entropy(counts).corrected < 14);  // Shannon's estimate cannot
  // Garwood's exact interval for 1 event: 0.0253178 to 5.5716434; for none: up to 3.6888795.
  const CollisionEntropy one = collision_entropy({2, 1, 1});
  CHECK(one.collisions == 1);
  CHECK(one.bits == Approx(std::log2(6.0)));
  CHECK(one.interval.low == Approx(std::log2(6 / 5.5716434)).epsilon(1e-7));
  CHECK(one.interval.high == Approx(std::log2(6 / 0.0253178)).epsilon(1e-5));
  const CollisionEntropy none = collision_entropy({1, 1, 1, 0});
  CHECK(std::isinf(none.bits));
  CHECK(none.interval.low == 0);  // log2(3 / 3.69) < 0
  CHECK(std::isinf(none.interval.high));
}

TEST_CASE("intervals of many collisions go on where those of fewer end", "[fast]") {
  // 49990 and 50001 collisions, on either side of where the approximation begins: the ends of the
  // mean number move by 11 and by 1.96 (sqrt(50001) - sqrt(49990)) = 0.0482 from it.
  const auto ends = [](const CollisionEntropy& e) {
    const double pairs = static_cast<double>(e.n) * static_cast<double>(e.n - 1) / 2;
    return Interval{pairs / std::exp2(e.interval.high), pairs / std::exp2(e.interval.low)};
  };
  const CollisionEntropy fewer = collision_entropy({316, 21, 5}),
                         more = collision_entropy({316, 22});
  REQUIRE(fewer.collisions == 49990);
  REQUIRE(more.collisions == 50001);
  CHECK(std::fabs(ends(more).low - ends(fewer).low - (11 - 0.0482)) < 0.001);
  CHECK(std::fabs(ends(more).high - ends(fewer).high - (11 + 0.0482)) < 0.001);
  const CollisionEntropy half = collision_entropy({500000, 500000});
  CHECK(half.bits == Approx(1).epsilon(1e-5));
  // 1.96 standard errors of a Poisson number of 2.5e11.
  const double error = 1.959964 / std::sqrt(2.5e11) / std::log(2.0);
  CHECK(half.bits - half.interval.low == Approx(error).epsilon(1e-3));
  CHECK(half.interval.high - half.bits == Approx(error).epsilon(1e-3));
}

TEST_CASE("expected distinct outcomes of the coupon collector", "[fast]") {
  CHECK(expected_distinct(1, 0) == 0);
  CHECK(expected_distinct(1, 5) == 1);
  CHECK(expected_distinct(2, 1) == Approx(1));
  CHECK(expected_distinct(2, 2) == Approx(1.5));
  CHECK(expected_distinct(6, 3) == Approx(6 * (1 - std::pow(5 / 6.0, 3))));
  // n - n (n - 1) / 2K where K is huge: cancellation would leave nothing.
  CHECK(expected_distinct(1e11, 100000) == Approx(100000 - 99999e5 / 2e11).epsilon(1e-12));
  CHECK(expected_distinct(1e50, 100000) == Approx(100000).epsilon(1e-12));
}

TEST_CASE("draws that are none are refused", "[fast]") {
  CHECK(test::message_of([] { entropy({0, 0}); }) == "entropy: expected at least one draw");
  CHECK(test::message_of([] { entropy({3, -1}); }) == "entropy: expected counts of at least 0");
  CHECK(test::message_of([] { collision_entropy({1}); }) ==
        "collision entropy: expected at least two draws");
}

}  // namespace entropy_test
