// The cheapest within a loss: what bisection measures, when it stops, and how often it is wrong.
#include <cmath>

#include "experiments/search/cheapest.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace search_cheapest_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// Answers of a candidate that loses a share of the samples: float32 alone is right on it, the
/// candidate alone on 1 % more.
stats::PairedAnswers answers(double loss, std::int64_t n, std::uint64_t seed) {
  const RandomSource random{.seed = seed, .stream = Stream::data};
  stats::PairedAnswers out{.n = n};
  for (std::int64_t i = 0; i < n; ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    if (u < 0.01) {
      ++out.only2;
    } else if (u < 0.02 + loss) {
      ++out.only1;
    } else {
      ++out.both;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("stages grow by four and end with all samples", "[fast]") {
  CHECK(stages_of(2000) == std::vector<std::int64_t>{250, 1000, 2000});
  CHECK(stages_of(10000) == std::vector<std::int64_t>{250, 1000, 4000, 10000});
  CHECK(stages_of(100) == std::vector<std::int64_t>{100});
}

TEST_CASE("bisection finds the cheapest that keeps the limit and stops what is clear", "[fast]") {
  const std::vector<double> losses = {0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0};
  std::vector<std::int64_t> images;
  const Cheapest found =
      cheapest_within(losses.size(), 10000, 0.02, [&](std::size_t c, std::int64_t n) {
        images.push_back(n);
        return answers(losses[c], n, c);
      });
  REQUIRE(found.found);
  CHECK(found.order[*found.found].candidate == 4);
  CHECK(found.order[*found.found].loss.high <= 0.02);
  CHECK(found.looks == 4 * (4 + kNeighbours));
  for (const Tried& tried : found.order) {
    if (losses[tried.candidate] > 0.15) CHECK(tried.answers.n == kFirstStage);
    if (tried.keeps == false) CHECK(tried.loss.low > 0.02);
  }
}

TEST_CASE("none is found where all lose too much or samples do not decide", "[fast]") {
  const Cheapest lost = cheapest_within(
      5, 2000, 0.005, [](std::size_t c, std::int64_t n) { return answers(0.2, n, c); });
  CHECK_FALSE(lost.found);
  for (const Tried& tried : lost.order) CHECK(tried.keeps == false);
  const Cheapest undecided = cheapest_within(
      5, 300, 0.005, [](std::size_t c, std::int64_t n) { return answers(0.0, n, c); });
  CHECK_FALSE(undecided.found);
  CHECK_FALSE(undecided.order.front().keeps);
  CHECK_FALSE(cheapest_within(0, 100, 0.005, [](std::size_t, std::int64_t) {
                return stats::PairedAnswers();
              }).found);
}

TEST_CASE("a loss just above the limit is accepted in at most 5 % of searches", "[fast]") {
  // Every candidate loses 1.05 times the limit: any answer is wrong.
  int wrong = 0;
  constexpr int kSearches = 200;
  for (int s = 0; s < kSearches; ++s) {
    const Cheapest found = cheapest_within(16, 1000, 0.02, [&](std::size_t c, std::int64_t n) {
      return answers(0.021, n, 1000 + 16 * static_cast<std::uint64_t>(s) + c);
    });
    wrong += found.found.has_value();
  }
  CHECK(wrong <= kSearches / 20);
}

}  // namespace search_cheapest_test
