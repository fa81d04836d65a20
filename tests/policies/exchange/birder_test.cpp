// Birder: the first step, the bound of its direction, the variance of two stages, nodes, state.
#include <cmath>
#include <string>
#include <vector>

#include "formats/error.hpp"
#include "policies/exchange/base/rule.hpp"
#include "policies/numerics/random_identity.hpp"
#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::birder_test {

using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

constexpr const char* kSgd = R"(, "update": {"optimizer": "sgd"})";

std::string rule(const std::string& exchange) { return exchange + kSgd; }

}  // namespace

TEST_CASE("birder: the first update is the sign of the gradient", "[fast]") {
  OneMatrix workers(rule(R"("birder")"), 6, 10);
  const auto gradient = noisy_gradients(1, 60, 0);
  // All workers agree, so that no draw decides.
  const std::vector<float> back = workers.exchange(0, {gradient[0], gradient[0], gradient[0]});
  for (std::size_t i = 0; i < 60; ++i) CHECK(back[i] == (gradient[0][i] > 0 ? 1 : -1));
  CHECK(workers.bits.sent == 60);
  CHECK(workers.bits.returned == 60);
}

TEST_CASE("birder: a worker sends drawn signs of m / b, and |m| <= b", "[fast]") {
  OneMatrix worker(rule(R"j("birder(0.95,1)")j"), 6, 10);
  std::vector<float> m(60), b(60);
  for (int step = 0; step < 200; ++step) {
    auto gradients = noisy_gradients(1, 60, step);
    for (float& value : gradients[0]) value = std::ldexp(value, step % 7 * 6 - 18);
    std::vector<float> direction(60);
    for (std::size_t i = 0; i < 60; ++i) {
      m[i] = 0.95f * m[i] + static_cast<float>(1 - 0.95) * gradients[0][i];
      b[i] = 0.95f * b[i] + static_cast<float>(1 - 0.95) * std::fabs(gradients[0][i]);
      REQUIRE(std::fabs(m[i]) <= b[i]);
      direction[i] = m[i] / b[i];
    }
    draw_signs(stored_random(0, "matrix.weight", "exchange", {net::Phase::training, step}, "send"),
               direction);
    CHECK(differences(worker.exchange(step, gradients), direction) == 0);
  }
}

TEST_CASE("birder: without a gradient the sign is drawn", "[fast]") {
  OneMatrix workers(rule(R"("birder")"), 40, 50);
  const std::vector<float> back = workers.exchange(0, {std::vector<float>(2000)});
  double sum = 0;
  for (const float sign : back) sum += sign;
  CHECK(std::fabs(sum) < 4 * std::sqrt(2000.0));
}

TEST_CASE("birder: one stage returns the mean of the signs, two stages a sign", "[fast]") {
  const auto gradients = noisy_gradients(4, 60, 0);
  OneMatrix one(rule(R"j("birder(0.5,1)")j"), 6, 10), two(rule(R"j("birder(0.5,2)")j"), 6, 10);
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> mean = one.exchange(step, noisy_gradients(4, 60, step));
    std::vector<float> drawn = mean;
    draw_signs(
        stored_random(0, "matrix.weight", "exchange", {net::Phase::training, step}, "return"),
        drawn);
    CHECK(two.exchange(step, noisy_gradients(4, 60, step)) == drawn);
    for (const float value : mean) CHECK(std::fabs(2 * value - std::round(2 * value)) == 0);
  }
  CHECK(one.bits.returned == 60 * 32);
}

TEST_CASE("birder: nodes send one sign of the mean of their workers", "[fast]") {
  OneMatrix workers(rule(R"j({"rule": "birder", "order": "hierarchical(2)"})j"), 6, 10);
  auto gradients = noisy_gradients(4, 60, 0);
  gradients[1] = gradients[0];
  gradients[2] = gradients[3] = gradients[0];
  const std::vector<float> back = workers.exchange(0, gradients);
  for (std::size_t i = 0; i < 60; ++i) CHECK(back[i] == (gradients[0][i] > 0 ? 1 : -1));
  CHECK(workers.bits.sent == 30);  // two nodes for four workers
  CHECK(workers.bits.returned == 30);
}

TEST_CASE("birder: means survive a restart, and other optimizers are refused", "[fast]") {
  OneMatrix whole(rule(R"("birder")"), 6, 10), resumed(rule(R"("birder")"), 6, 10);
  for (int step = 0; step < 3; ++step) whole.exchange(step, noisy_gradients(3, 60, step));
  resumed.load(whole.state());
  const auto next = noisy_gradients(3, 60, 3);
  CHECK(resumed.exchange(3, next) == whole.exchange(3, next));
  CHECK(resumed.state() == whole.state());
  CHECK_THROWS_WITH(OneMatrix(R"("birder")", 6, 10),
                    Catch::Contains("expected update.optimizer sgd"));
}

}  // namespace numemu::birder_test
