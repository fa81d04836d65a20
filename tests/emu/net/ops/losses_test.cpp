// Softmax cross-entropy against float64, its gradient by central differences, and its corner cases.
#include "emu/net/ops/losses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::losses_test {
namespace {

constexpr std::int64_t kBatch = 6, kClasses = 5;
const std::vector<std::int32_t> kLabels{0, 4, 2, 2, 1, 3};

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

TEST_CASE("a row without a label has no loss, no gradient and no share in the mean", "[fast]") {
  Tensor logits({3, 2});
  logits.data = {1, 2, 7, -3, 0.5f, 0.25f};
  Tensor two({2, 2}), gradient, of_two;
  two.data = {1, 2, 0.5f, 0.25f};
  const Classified seen = cross_entropy(logits, {1, -1, 0}, &gradient);
  const Classified expected = cross_entropy(two, {1, 0}, &of_two);
  CHECK(seen.loss == std::vector<double>{expected.loss[0], 0, expected.loss[1]});
  CHECK(seen.right == std::vector<std::uint8_t>{1, 0, 1});
  CHECK(seen.counted == 2);
  const std::vector<float>& g = of_two.data;
  CHECK(gradient.data == std::vector<float>{g[0], g[1], 0, 0, g[2], g[3]});
  CHECK_THROWS_WITH(cross_entropy(two, {1, -2}), Catch::Contains("label -2 of sample 1"));
}

TEST_CASE("leading axes count as one: a text has a target per character", "[fast]") {
  constexpr std::int64_t kTime = 40, kLetters = 70;  // beyond kSerialElements with the batch
  Tensor flat = test::random_tensor({kBatch * kTime, kLetters}, 2), stacked = flat;
  stacked.shape = {kBatch, kTime, kLetters};
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kBatch * kTime; ++i)
    labels.push_back(static_cast<std::int32_t>(i * 3 % kLetters));
  Tensor flat_gradient, stacked_gradient;
  const Classified expected = cross_entropy(flat, labels, &flat_gradient, 3);
  const Classified seen = cross_entropy(stacked, labels, &stacked_gradient, 3);
  CHECK(seen.loss == expected.loss);
  CHECK(seen.right == expected.right);
  CHECK(stacked_gradient.shape == stacked.shape);
  CHECK(stacked_gradient.data == flat_gradient.data);
  // Each row is what it is alone, but for the mean over the targets.
  Tensor row({1, kLetters}), row_gradient;
  std::copy_n(flat.data.begin() + 17 * kLetters, kLetters, row.data.begin());
  CHECK(cross_entropy(row, {labels[17]}, &row_gradient).loss[0] == seen.loss[17]);
  for (std::int64_t c = 0; c < kLetters; ++c) {
    // Two roundings to float32, each of half an ulp.
    const double scaled = row_gradient.data[c] * 3.0 / (kBatch * kTime);
    CHECK(std::fabs(stacked_gradient.data[17 * kLetters + c] - scaled) <=
          0x1p-23 * std::fabs(scaled));
  }
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
  CHECK_THROWS_AS(cross_entropy(Tensor({3}), {1}), Error);
  CHECK_THROWS_WITH(
      cross_entropy(Tensor({2, 2, 3}), {1, 2, 0}),
      Catch::Contains("expected logits of 3 targets") && Catch::Contains("[2, 2, 3]"));
}

}  // namespace

}  // namespace numemu::net::losses_test
