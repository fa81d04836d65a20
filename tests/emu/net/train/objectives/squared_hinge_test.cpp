// The squared hinge against its definition, and its derivative against differences.
#include <cmath>
#include <limits>

#include "emu/net/train/objective.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::squared_hinge_test {
namespace {

TEST_CASE("squared_hinge: loss and derivative of every class", "[fast]") {
  const std::vector<std::int32_t> labels{1, 0, -1};
  Tensor logits({3, 2}), gradient;
  logits.data = {-0.5f, 0.25f, 2, -3, 5, 5};
  const Classified seen =
      find_objective("squared_hinge").evaluate(logits, {labels, {}}, &gradient, 1);
  CHECK(seen.counted == 2);
  // Class 0: 1 + z = 0.5, class 1 is the label: 1 - z = 0.75; then both margins are kept.
  CHECK(seen.loss == std::vector<double>{(0.25 + 0.5625) / 2, 0, 0});
  // 2 (1 + z) / 2 and -2 (1 - z) / 2, over two targets.
  CHECK(gradient.data == std::vector<float>{0.25f, -0.375f, 0, 0, 0, 0});
  CHECK(seen.right == std::vector<std::uint8_t>{1, 1, 0});
}

TEST_CASE("squared_hinge: the derivative is that of the loss", "[fast]") {
  constexpr std::int64_t kBatch = 4, kClasses = 6;
  const std::vector<std::int32_t> labels{0, 5, 2, 3};
  const Tensor logits = test::random_tensor({kBatch, kClasses}, 5);
  const Objective objective = find_objective("squared_hinge");
  const auto total = [&](const Tensor& z) {
    double sum = 0;
    for (const double loss : objective.evaluate(z, {labels, {}}, nullptr, 1).loss) sum += loss;
    return sum / kBatch;
  };
  Tensor gradient;
  objective.evaluate(logits, {labels, {}}, &gradient, 1);
  // Pieces of parabolas: a central difference is exact but for an edge between its ends, where the
  // second derivative of a mean, 2 / (classes batch), changes it by at most half a step of it.
  constexpr float kStep = 0x1p-10f;
  const double tolerance = kStep / (kClasses * kBatch) + 0x1p-20;
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    Tensor up = logits, down = logits;
    up.data[i] += kStep;
    down.data[i] -= kStep;
    const double slope = (total(up) - total(down)) / (double{up.data[i]} - double{down.data[i]});
    CHECK(std::fabs(slope - gradient.data[i]) <= tolerance);
  }
}

TEST_CASE("squared_hinge: a NaN among the logits stays one", "[fast]") {
  Tensor logits({1, 2});
  logits.data = {std::numeric_limits<float>::quiet_NaN(), 1};
  CHECK(
      std::isnan(find_objective("squared_hinge").evaluate(logits, {{1}, {}}, nullptr, 1).loss[0]));
}

}  // namespace
}  // namespace numemu::net::squared_hinge_test
