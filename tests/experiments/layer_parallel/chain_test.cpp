// A chain of scalar stages: derivatives by differences, and the order of what the penalty leaves.
#include "experiments/layer_parallel/layer_parallel.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace numemu::chain_test {

using experiments::layer_parallel::Chain;

TEST_CASE("chain: gradients are those of differences", "[fast]") {
  const Chain chain = Chain::drawn(4, 1, 0);
  const auto loss = [](const Chain& c) {
    double x = c.input;
    for (const double w : c.weights) x = std::tanh(w * x);
    return (x - c.target) * (x - c.target) / 2;
  };
  for (std::size_t k = 0; k < 4; ++k) {
    constexpr double kSmall = 1e-5;
    Chain up = chain, down = chain;
    up.weights[k] += kSmall;
    down.weights[k] -= kSmall;
    CHECK(chain.gradients()[k] ==
          Approx((loss(up) - loss(down)) / (2 * kSmall)).epsilon(1e-6).margin(1e-10));
  }
}

TEST_CASE("chain: the penalty's gradient is off by the order of 1 / beta", "[fast]") {
  double off[2] = {}, left[2] = {};
  for (int i = 0; i < 8; ++i) {
    const Chain chain = Chain::drawn(4, 2, i);
    for (const int b : {0, 1}) {
      const double beta = b == 0 ? 100 : 1000, found = chain.penalty_gradients(beta)[0];
      off[b] += std::fabs(found - chain.gradients()[0]);
      left[b] += std::fabs(found - chain.shifted_gradients(beta)[0]);
    }
  }
  CHECK(off[0] / off[1] == Approx(10).epsilon(0.05));
  CHECK(left[0] / left[1] > 50);  // the next order
}

}  // namespace numemu::chain_test
