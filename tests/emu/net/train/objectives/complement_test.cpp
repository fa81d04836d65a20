// The complement objective: a published-form vector, central differences of float64, its corners.
#include <cmath>
#include <limits>

#include "emu/net/train/objective.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::complement_test {
namespace {

// Float32 exp and log, each with a relative error of at most 2^-22; sums and products in float64.
constexpr double kRoundings = 8 * 0x1p-22;

/// -H / K of the logits of one row that are not the label's.
double reference_loss(const std::vector<double>& z, std::size_t label) {
  double sum = 0, entropy = 0;
  for (std::size_t c = 0; c < z.size(); ++c) sum += c == label ? 0 : std::exp(z[c]);
  for (std::size_t c = 0; c < z.size(); ++c) {
    const double q = c == label ? 0 : std::exp(z[c]) / sum;
    if (q > 0) entropy -= q * std::log(q);
  }
  return -entropy / static_cast<double>(z.size());
}

TEST_CASE("complement: entropy of the other logits and its derivative", "[fast]") {
  Tensor logits({1, 4});
  logits.data = {1.3F, -0.4F, 0.2F, 0.9F};
  Tensor gradient;
  const Classified seen = find_objective("complement").evaluate(logits, {{0}, {}}, &gradient, 1);
  constexpr double kDigits = 5e-7;  // of the numbers below
  CHECK(std::fabs(-4 * seen.loss[0] - 0.967232775) < kDigits);
  const double derivative[] = {0, 0.139145, 0.085121, -0.224266};  // of the entropy
  for (std::size_t c = 0; c < 4; ++c)
    CHECK(std::fabs(-4 * double{gradient.data[c]} - derivative[c]) < kDigits * 4);
  CHECK(gradient.data[0] == 0);
  CHECK(seen.right[0] == 1);
}

TEST_CASE("complement: central differences, loss scale and mean over the batch", "[fast]") {
  constexpr std::int64_t kBatch = 6, kClasses = 5;
  const std::vector<std::int32_t> labels{0, 4, 2, 2, 1, 3};
  Tensor logits = test::random_tensor({kBatch, kClasses}, 1);
  for (float& z : logits.data) z *= 4;
  Tensor gradient;
  constexpr float kScale = 8;
  const Classified seen =
      find_objective("complement").evaluate(logits, {labels, {}}, &gradient, kScale);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float* const row = logits.data.data() + i * kClasses;
    std::vector<double> z(row, row + kClasses);
    CHECK(std::fabs(seen.loss[i] - reference_loss(z, labels[i])) < kRoundings);
    constexpr double kStep = 0x1p-12;  // truncation: step^2 / 6 times a third derivative below 1
    for (std::size_t c = 0; c < z.size(); ++c) {
      const double centre = z[c];
      z[c] = centre + kStep;
      const double above = reference_loss(z, labels[i]);
      z[c] = centre - kStep;
      const double below = reference_loss(z, labels[i]);
      z[c] = centre;
      const double expected = kScale / kBatch * (above - below) / (2 * kStep);
      CHECK(std::fabs(gradient.data[i * kClasses + c] - expected) <
            kScale / kBatch * (kRoundings + kStep * kStep));
    }
  }
}

TEST_CASE("complement is finite where the label has all the probability, and 0 without a choice",
          "[fast]") {
  const auto evaluate = find_objective("complement").evaluate;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Tensor logits({2, 3});
  logits.data = {80, 1, -1, 5, 2, -kInfinity};
  Tensor gradient;
  const Classified seen = evaluate(logits, {{0, 0}, {}}, &gradient, 1);
  CHECK(std::fabs(seen.loss[0] - reference_loss({0, 1, -1}, 0)) <
        kRoundings);  // not of the label's
  CHECK(gradient.data[1] > 0);
  CHECK(seen.loss[1] == 0);
  for (std::size_t c = 3; c < 6; ++c) CHECK(gradient.data[c] == 0);
  Tensor two({1, 2});
  two.data = {3, -7};
  CHECK(evaluate(two, {{1}, {}}, &gradient, 1).loss[0] == 0);
  CHECK(gradient.data == std::vector<float>{0, 0});
  Tensor one({1, 1});
  CHECK(evaluate(one, {{0}, {}}, &gradient, 1).loss[0] == 0);
  CHECK(gradient.data == std::vector<float>{0});
  logits.data[4] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(evaluate(logits, {{0, 0}, {}}, &gradient, 1).loss[1]));
  CHECK(std::isnan(gradient.data[4]));
}

}  // namespace
}  // namespace numemu::net::complement_test
