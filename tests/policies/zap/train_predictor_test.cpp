// Training of a predictor: its loss and derivative, what it learns, the same bits on any threads.
#include "policies/zap/train_predictor.hpp"

#include <omp.h>

#include <cmath>

#include "policies/zap/bookkeeping.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/zap/correlated_maps.hpp"

namespace train_predictor_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

std::vector<float> weights_of(const ZapPredictor& predictor) {
  std::vector<float> all;
  for (const net::Parameter* p : predictor.graph().parameters())
    all.insert(all.end(), p->value.data.begin(), p->value.data.end());
  return all;
}

}  // namespace

TEST_CASE("the loss looks at predicted positions alone and is clamped", "[fast]") {
  const PositionMask mask = position_mask(5, 2, 2);  // 10/01
  net::Tensor x(net::Shape{1, 2, 2, 1}), z(x.shape), gradient;
  x.data = {3, 0.5f, 0, 7};
  z.data = {9, 0.25f, 0.5f, -9};
  // Errors: 0.25 - 1 and 0.5 - 0, over four elements.
  CHECK(zap_loss(mask, x, z, &gradient) == (0.75 * 0.75 + 0.25) / 4);
  CHECK(gradient.data == std::vector<float>{0, -0.375f, 0.25f, 0});
  z.data = {0, 2, -1, 0};  // both right beyond the clamp
  CHECK(zap_loss(mask, x, z, &gradient) == 0);
  CHECK(gradient.data == std::vector<float>(4, 0.0f));
  z.data = {0, -1, 2, 0};  // both wrong beyond it: no way back
  CHECK(zap_loss(mask, x, z, &gradient) == 0.5);
  CHECK(gradient.data == std::vector<float>(4, 0.0f));
  z.data = {0, 0, 1, 0};  // the clamp's ends let the derivative pass
  zap_loss(mask, x, z, &gradient);
  CHECK(gradient.data == std::vector<float>{0, -0.5f, 0.5f, 0});
}

TEST_CASE("the loss's derivative is its slope", "[fast]") {
  const PositionMask mask = position_mask(6, 5, 5);
  const net::Tensor x = testing::correlated_maps(2, 5, 5, 3, 4);
  net::Tensor z(x.shape), gradient;
  for (std::int64_t i = 0; i < z.size(); ++i) z.data[i] = static_cast<float>((i * 7 % 13) / 16.0);
  zap_loss(mask, x, z, &gradient);
  constexpr float kStep = 0x1p-8f;
  for (std::int64_t i = 0; i < z.size(); i += 5) {
    if (z.data[i] == 0) continue;
    net::Tensor up = z, down = z;
    up.data[i] += kStep;
    down.data[i] -= kStep;
    // A parabola: the central difference is exact but for cancellation, 2^-52 loss / step.
    const double slope = (zap_loss(mask, x, up) - zap_loss(mask, x, down)) / (2 * kStep);
    CHECK(std::fabs(slope - gradient.data[i]) <= 1e-9);
  }
}

TEST_CASE("training beats a random predictor that skips as much", "[fast]") {
  constexpr int kMask = 5;
  const net::Tensor train = testing::correlated_maps(192, 10, 10, 4, 1);
  const net::Tensor test = testing::correlated_maps(64, 10, 10, 4, 2);
  ZapPredictor predictor("relu", {10, 10, 4}, kMask, 3);
  const std::vector<float> zero{0};
  const std::vector<double> losses =
      train_predictor(predictor, train, {.epochs = 4, .batch = 32, .seed = 5});
  REQUIRE(losses.size() == 4);
  CHECK(losses.back() < 0.8 * losses.front());
  const ZapTally tally = tally_thresholds(predictor, test, std::vector<float>{0.3f})[0];
  const double rate = static_cast<double>(tally.skipped()) / static_cast<double>(tally.predicted);
  // Skipping at random at that rate would lose rate x (share of predicted positions).
  const double random = rate * (1 - mask_share(kMask).value());
  CHECK(rate > 0.2);
  CHECK(tally.error() < random / 3);
}

TEST_CASE("a trained predictor has the same bits on one thread and on two", "[fast]") {
  const net::Tensor maps = testing::correlated_maps(40, 9, 9, 5, 1);
  const int threads = omp_get_max_threads();
  const auto trained = [&](int count, std::uint64_t seed) {
    omp_set_num_threads(count);
    ZapPredictor predictor("relu", {9, 9, 5}, 4, 3);
    train_predictor(predictor, maps, {.epochs = 2, .batch = 16, .seed = seed});
    omp_set_num_threads(threads);
    return weights_of(predictor);
  };
  const std::vector<float> one = trained(1, 5);
  CHECK(one == trained(2, 5));
  CHECK(one != trained(1, 6));
}

TEST_CASE("training without maps, or with options out of range, is refused", "[fast]") {
  ZapPredictor predictor("relu", {4, 4, 2}, 5);
  CHECK_THAT(message_of([&] { train_predictor(predictor, net::Tensor(), {}); }),
             Catch::Contains("relu.zap: expected maps to train on"));
  const net::Tensor maps(net::Shape{2, 4, 4, 2});
  CHECK_FALSE(message_of([&] { train_predictor(predictor, maps, {.batch = 0}); }).empty());
}

}  // namespace train_predictor_test
