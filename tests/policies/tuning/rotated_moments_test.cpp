// Rotated moments: the law of independent elements, every sign vector of a short block, and the
// rotation that recipes have.
#include "policies/tuning/rotated_moments.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "emu/net/ops/linear.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace rotated_moments_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

constexpr double kSums = 1e-12;  // float64 sums in another order

/// Element j of the orthonormal Hadamard transform of a block under signs.
double rotated(const std::vector<float>& x, unsigned signs, unsigned j) {
  double sum = 0;
  for (unsigned i = 0; i < x.size(); ++i) {
    const bool negative = (std::popcount(i & j) + (signs >> i)) % 2 != 0;
    sum += negative ? -double{x[i]} : double{x[i]};
  }
  return sum / std::sqrt(static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("rotated moments: the mean over all signs of a block", "[fast]") {
  const std::vector<float> x = {3, -1, .5f, 0, 2, 7, -.25f, 1};
  double square = 0, fourth = 0, largest = 0;
  for (unsigned signs = 0; signs < 256; ++signs) {
    for (unsigned j = 0; j < 8; ++j) {
      const double y = rotated(x, signs, j);
      square += y * y / (256 * 8);
      fourth += y * y * y * y / (256 * 8);
      largest = std::max(largest, std::abs(y));
    }
  }
  const RawMoments predicted = rotated_moments(x.data(), 8, 8);
  CHECK(predicted.square == Approx(square).epsilon(kSums));
  CHECK(predicted.fourth == Approx(fourth).epsilon(kSums));
  CHECK(predicted.largest == Approx(largest).epsilon(kSums));  // some signs reach the bound
  CHECK(predicted.square == Approx(raw_moments(x.data(), 8).square).epsilon(kSums));
}

TEST_CASE("rotated moments: independent elements of kurtosis k come to 3 + (k - 3) / b", "[fast]") {
  // One in p elements is 1, the rest 0: kurtosis p. Over a whole cycle of a two-level design the
  // moments of independent pairs are exact: all p^2 pairs as blocks of two.
  const int p = 9;
  std::vector<float> pairs;
  for (int i = 0; i < p * p; ++i) {
    pairs.push_back(i / p == 0 ? 1.0f : 0.0f);
    pairs.push_back(i % p == 0 ? 1.0f : 0.0f);
  }
  const auto n = static_cast<std::int64_t>(pairs.size());
  CHECK(raw_moments(pairs.data(), n).kurtosis() == Approx(p).epsilon(kSums));
  CHECK(rotated_moments(pairs.data(), n, 2).kurtosis() == Approx(3 + (p - 3) / 2.0).epsilon(kSums));
  // Signs alone, kurtosis 1: rises toward 3.
  const std::vector<float> signs = {1, -1, -1, 1, 1, 1, -1, 1};
  CHECK(rotated_moments(signs.data(), 8, 8).kurtosis() == Approx(3 - 2 / 8.0).epsilon(kSums));
  const std::vector<float> zeros(8);
  CHECK(rotated_moments(zeros.data(), 8, 8).kurtosis() == 0);
  CHECK(raw_moments(zeros.data(), 8).peak() == 0);
  CHECK(rotated_share_above(zeros.data(), 8, 8, 1) == 0);
}

TEST_CASE("rotated moments: what the recipe's rotation does to a layer's input", "[fast]") {
  constexpr std::int64_t kBlock = 64, kRows = 512;
  OneLayer layer(R"j("transform": "hadamard(64)")j", std::make_unique<net::Linear>(kBlock, 4),
                 {kBlock});
  net::Tensor x = noise({kRows, kBlock}, 3);
  for (std::int64_t r = 0; r < kRows; ++r) x.data[r * kBlock + 5] *= 30;  // an outlier channel
  net::Tensor seen;
  layer.hear([&](const net::Product& p) { seen = *p.a.source; });
  net::forward(layer.graph(), x, layer.numerics());
  const RawMoments before = raw_moments(x.data.data(), x.size()),
                   after = raw_moments(seen.data.data(), seen.size()),
                   predicted = rotated_moments(x.data.data(), x.size(), kBlock);
  CHECK(before.kurtosis() > 20);
  // Signs are drawn once for all rows, which the outlier's channel then has in common: 64 rotated
  // channels, each constant to that part. Their fourth moments vary by about sqrt(8 / 64) of the
  // excess over the rows' own; the law without outliers would be 3.
  CHECK(after.kurtosis() == Approx(predicted.kurtosis()).epsilon(0.15));
  CHECK(after.kurtosis() < before.kurtosis() / 4);
  CHECK(after.peak() < before.peak() / 2);
  CHECK(after.largest / std::sqrt(after.square) <=
        predicted.largest / std::sqrt(predicted.square) * (1 + 1e-6));
}

}  // namespace rotated_moments_test
