// The order of an epoch: a permutation, another in each epoch and for each seed, without visible
// bias.
#include "emu/net/train/shuffle.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"

namespace numemu::net::shuffle_test {
namespace {

TEST_CASE("an epoch's order is a permutation that depends on seed and epoch", "[fast]") {
  const std::vector<std::int64_t> order = shuffled(1000, 0, 0);
  CHECK(order == shuffled(1000, 0, 0));
  CHECK(order != shuffled(1000, 0, 1));
  CHECK(order != shuffled(1000, 1, 0));
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 1000; ++i) CHECK(sorted[i] == i);
  CHECK(shuffled(0, 0, 0).empty());
  CHECK(shuffled(1, 0, 0) == std::vector<std::int64_t>{0});
}

TEST_CASE("every image comes first equally often", "[fast]") {
  constexpr int kImages = 8, kTrials = 8000;
  std::vector<double> counts(kImages);
  for (int t = 0; t < kTrials; ++t) ++counts[shuffled(kImages, 9, t).front()];
  double chi_square = 0;
  for (const double c : counts) chi_square += (c - 1000) * (c - 1000) / 1000;
  CHECK(chi_square < 24.3);  // 7 degrees of freedom, 0.1 %
}

}  // namespace
}  // namespace numemu::net::shuffle_test
