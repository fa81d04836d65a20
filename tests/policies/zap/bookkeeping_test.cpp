// Hits, misses, savings and errors: the vector of the specification, and identities on random maps.
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/random.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/catch.hpp"
#include "tests/policies/zap/correlated_maps.hpp"

namespace bookkeeping_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

net::Tensor row(std::vector<float> values) {
  net::Tensor x({1, 1, static_cast<std::int64_t>(values.size()), 1});
  x.data = std::move(values);
  return x;
}

}  // namespace

TEST_CASE("bookkeeping of the specification", "[fast]") {
  const PositionMask mask = position_mask(5, 1, 4);
  REQUIRE(mask.computed == std::vector<std::uint8_t>{1, 0, 1, 0});
  net::Tensor x = row({0, 2, 0, 3});
  const net::Tensor z = row({-1, 0.2f, -1, -0.1f});
  const ZapTally tally = tally_of(mask, x, z, 0);
  CHECK(tally.computed == 2);
  CHECK(tally.predicted == 2);
  CHECK(tally.error() == 0.6);
  CHECK(tally.skipped() == 1);
  CHECK(tally.saving() == 0.25);
  CHECK(tally.losses == 1);
  CHECK(tally.zeros_kept == 0);
  CHECK(tally.values_kept == 1);
  CHECK(tally.zeros_skipped == 0);
  CHECK(tally.error_limit() == 1);
  skip_zeros(mask, z, 0, x);
  CHECK(x.data == std::vector<float>{0, 2, 0, 0});
}

TEST_CASE("identities on random maps, all masks and thresholds", "[fast]") {
  const net::Tensor x = testing::correlated_maps(3, 7, 9, 5, 8);
  net::Tensor z(x.shape);
  const RandomSource random{9, Stream::vectors, 4, 0};
  for (std::int64_t i = 0; i < z.size(); ++i)
    z.data[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int type = kLeastMaskType; type <= kLargestMaskType; ++type) {
    const PositionMask mask = position_mask(type, 7, 9);
    std::int64_t potential = -1, skipped = 0;
    double error = 0;
    for (const float threshold : {-kInfinity, 0.0f, 0.2f, 0.5f, 0.9f, kInfinity}) {
      const ZapTally tally = tally_of(mask, x, z, threshold);
      CHECK(tally.elements() == x.size());
      CHECK(tally.computed ==
            std::accumulate(mask.computed.begin(), mask.computed.end(), std::int64_t{0}) * 3 * 5);
      CHECK(tally.predicted ==
            tally.zeros_skipped + tally.losses + tally.values_kept + tally.zeros_kept);
      // Zeros in I_t: what a predictor without fault saves.
      const std::int64_t zeros = tally.zeros_skipped + tally.zeros_kept;
      if (potential < 0) potential = zeros;
      CHECK(zeros == potential);
      CHECK(tally.skipped() >= skipped);
      CHECK(tally.error() >= error);
      skipped = tally.skipped();
      error = tally.error();
      // The rest of the map equals the rest in the tally.
      net::Tensor kept = x;
      skip_zeros(mask, z, threshold, kept);
      double left = 0, all = 0;
      for (std::int64_t i = 0; i < x.size(); ++i) {
        left += kept.data[i];
        all += x.data[i];
      }
      constexpr double kRounding = 1e-12;  // 945 float64 additions
      CHECK(std::fabs(tally.error() - (1 - left / all)) < kRounding);
      if (threshold == -kInfinity) CHECK((tally.error() == 0 && tally.skipped() == 0));
      if (threshold == kInfinity) {
        CHECK(tally.skipped() == tally.predicted);
        CHECK(std::fabs(tally.error() - tally.error_limit()) < kRounding);
      }
    }
  }
}

TEST_CASE("savings follow the counts", "[fast]") {
  ZapTally tally;
  CHECK(tally.saving() == 0);
  CHECK(tally.error() == 0);
  tally.computed = 400;
  tally.predicted = 600;
  tally.zeros_skipped = 200;
  tally.losses = 50;
  CHECK(tally.saving() == 0.25);
  // Overhead against what a predicted activation costs, as the specification has it.
  CHECK(ZapPredictor::kMacs / 576.0 == 0.03125);
  ZapTally twice = tally;
  twice += tally;
  CHECK(twice.skipped() == 500);
  CHECK(twice.saving() == tally.saving());
}

}  // namespace bookkeeping_test
