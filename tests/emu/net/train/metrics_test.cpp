// Sums of steps become the means of an epoch.
#include "emu/net/train/metrics.hpp"

#include <cmath>

#include "emu/net/train/step.hpp"
#include "tests/catch.hpp"

namespace numemu::net::metrics_test {
namespace {

TEST_CASE("an epoch's means weigh targets and count skipped steps apart", "[fast]") {
  EpochSums sums;
  StepResult first, second;
  first.seen = {.loss = {1, 2, 3}, .right = {1, 0, 1}, .counted = 3};
  first.gradient_norm = 4;
  first.loss_scale = 16;
  second.seen = {.loss = {8}, .right = {0}, .counted = 1};
  second.accepted = false;
  second.gradient_norm = 100;
  second.loss_scale = 8;
  CHECK(sums.add(first, 0.5) == 2);
  CHECK(sums.add(second, 0.25) == 8);
  const EpochMetrics metrics = sums.metrics(3, 7);
  CHECK(metrics.epoch == 3);
  CHECK(metrics.step == 7);
  CHECK(metrics.train_loss == 3.5);
  CHECK(metrics.train_top1 == 0.5);
  CHECK(metrics.gradient_norm == 4);
  CHECK(metrics.skipped == 1);
  CHECK(metrics.learning_rate == 0.25);
  CHECK(metrics.loss_scale == 8);
}

TEST_CASE("penalties are part of the loss of their steps", "[fast]") {
  EpochSums sums;
  StepResult first, second;
  first.seen = {.loss = {1, 2, 3}, .right = {1, 0, 1}, .counted = 3};
  first.penalty = 0.5;
  second.seen = {.loss = {8}, .right = {0}, .counted = 1};
  CHECK(sums.add(first, 0.5) == 2.5);
  CHECK(sums.add(second, 0.5) == 8);
  CHECK(sums.metrics(0, 2).train_loss == (3 * 2.5 + 8) / 4);
}

TEST_CASE("perplexity and bits are exponential and logarithm of a loss", "[fast]") {
  CHECK(perplexity(0) == 1);
  // One ulp of float32 of the result, and e^1.5 times half an ulp of the argument.
  CHECK(perplexity(1.5) == Approx(std::exp(1.5)).epsilon(0x1p-22));
  CHECK(bits_per_character(std::log(2.0)) == Approx(1).epsilon(0x1p-50));
  CHECK(bits_per_character(0) == 0);
}

}  // namespace
}  // namespace numemu::net::metrics_test
