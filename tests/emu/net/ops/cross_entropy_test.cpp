// Softmax cross-entropy against float64, its gradient by central differences, and its corner cases.
#include "emu/net/ops/cross_entropy.hpp"

#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kBatch = 6, kClasses = 5;
const std::vector<std::uint8_t> kLabels{0, 4, 2, 2, 1, 3};

double reference_loss(const test::Doubles& z, std::int64_t sample) {
  double sum = 0;
  for (std::int64_t c = 0; c < kClasses; ++c) sum += std::exp(z[sample * kClasses + c]);
  return std::log(sum) - z[sample * kClasses + kLabels[sample]];
}

TEST_CASE("cross_entropy and its gradient", "[fast]") {
  Tensor logits = test::random_tensor({kBatch, kClasses}, 1);
  for (float& z : logits.data) z *= 4;
  Tensor gradient;
  constexpr float kScale = 8;
  const Classified seen = cross_entropy(logits, kLabels, &gradient, kScale);
  test::Doubles z = test::widened(logits);
  for (std::int64_t i = 0; i < kBatch; ++i) {
    // Float32 exp and log: a relative error of the sum of 2^-23, and one of the logarithm (below 8)
    // of 2^-23.
    CHECK(std::fabs(seen.loss[i] - reference_loss(z, i)) < 10 * 0x1p-23);
  }
  constexpr double kStep = 0x1p-14;  // truncation: step^2 / 6 times a third derivative below 1
  for (std::size_t e = 0; e < z.size(); ++e) {
    const std::int64_t sample = static_cast<std::int64_t>(e) / kClasses;
    const double centre = z[e];
    z[e] = centre + kStep;
    const double above = reference_loss(z, sample);
    z[e] = centre - kStep;
    const double below = reference_loss(z, sample);
    z[e] = centre;
    const double expected = kScale / kBatch * (above - below) / (2 * kStep);
    CHECK(std::fabs(gradient.data[e] - expected) < kScale / kBatch * (3 * 0x1p-23 + kStep * kStep));
  }
}

TEST_CASE("cross_entropy survives large logits and counts the first maximum as the answer",
          "[fast]") {
  Tensor logits({3, 3});
  logits.data = {1e30f, 0, -1e30f, 2, 2, 1, 2, 2, 1};
  Tensor gradient;
  const Classified seen = cross_entropy(logits, {0, 0, 1}, &gradient);
  CHECK(seen.loss[0] == 0);
  CHECK(seen.right == std::vector<std::uint8_t>{1, 1, 0});
  for (const float g : gradient.data) CHECK(std::isfinite(g));
}

TEST_CASE("a NaN logit is never right", "[fast]") {
  Tensor logits({1, 2});
  logits.data = {3, std::numeric_limits<float>::quiet_NaN()};
  const Classified seen = cross_entropy(logits, {0});
  CHECK(seen.right[0] == 0);
  CHECK(std::isnan(seen.loss[0]));
}

TEST_CASE("cross_entropy refuses labels that are no class and batches that do not fit", "[fast]") {
  CHECK_THROWS_WITH(cross_entropy(Tensor({1, 3}), {3}), Catch::Contains("label 3 of sample 0"));
  CHECK_THROWS_AS(cross_entropy(Tensor({2, 3}), {1}), Error);
}

}  // namespace
}  // namespace numemu::net
