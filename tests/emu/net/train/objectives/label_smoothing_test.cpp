// Label smoothing against the cross-entropy to the smoothed label, in float64.
#include <cmath>

#include "emu/net/train/objective.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::label_smoothing_test {
namespace {

// Float32 exp and log, each with a relative error of at most 2^-22; sums and products in float64.
constexpr double kRoundings = 8 * 0x1p-22;

TEST_CASE("label_smoothing: loss and derivative of the spread label", "[fast]") {
  constexpr std::int64_t kBatch = 5, kClasses = 4;
  const std::vector<std::int32_t> labels{0, 3, 2, 1, -1};
  Tensor logits = test::random_tensor({kBatch, kClasses}, 3);
  for (float& z : logits.data) z *= 3;
  for (const double share : {0.1, 0.2, 1.0}) {
    INFO(share);
    Tensor gradient;
    const Classified seen = find_objective("label_smoothing(" + std::to_string(share) + ")")
                                .evaluate(logits, {labels, {}}, &gradient, 1);
    CHECK(seen.counted == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      const float* const z = logits.data.data() + i * kClasses;
      double sum = 0, loss = 0;
      for (int c = 0; c < kClasses; ++c) sum += std::exp(double{z[c]});
      for (int c = 0; c < kClasses; ++c) {
        const double p = std::exp(double{z[c]}) / sum;
        const double label = share / kClasses + (c == labels[i] ? 1 - share : 0);
        loss -= label * std::log(p);
        CHECK(std::fabs(gradient.data[i * kClasses + c] - (p - label) / 4) < kRoundings);
      }
      CHECK(std::fabs(seen.loss[i] - loss) < kRoundings);
    }
    CHECK(seen.loss[4] == 0);
    CHECK(gradient.data.back() == 0);
  }
}

TEST_CASE("label_smoothing: without a share it has the bits of cross_entropy", "[fast]") {
  const Tensor logits = test::random_tensor({6, 7}, 4);
  const Targets targets{{0, 1, 2, 3, 4, 5}, {}};
  Tensor smoothed, plain;
  CHECK(find_objective("label_smoothing(0)").evaluate(logits, targets, &smoothed, 4).loss ==
        find_objective("cross_entropy").evaluate(logits, targets, &plain, 4).loss);
  CHECK(smoothed.data == plain.data);
}

}  // namespace
}  // namespace numemu::net::label_smoothing_test
