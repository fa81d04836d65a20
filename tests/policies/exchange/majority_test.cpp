// Majority: votes by hand, ties and zeros, momentum, state.
#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::majority_test {

using namespace numemu::policies::test;

TEST_CASE("majority: the sign of most workers comes back", "[fast]") {
  OneMatrix workers(R"j("majority(0)")j", 6, 10);
  for (int step = 0; step < 10; ++step) {
    const auto gradients = noisy_gradients(3, 60, step);
    const std::vector<float> back = workers.exchange(step, gradients);
    for (std::size_t i = 0; i < 60; ++i) {
      int votes = 0;
      for (const auto& own : gradients) votes += own[i] > 0 ? 1 : -1;
      CHECK(back[i] == (votes > 0 ? 1 : -1));
    }
  }
  CHECK(workers.bits.sent == 60);
  CHECK(workers.bits.returned == 60);
}

TEST_CASE("majority: the signs of ties and zeros are drawn", "[fast]") {
  OneMatrix workers(R"j("majority(0)")j", 40, 50);
  const std::vector<float> up(2000, 1.0f), down(2000, -1.0f), zero(2000);
  using Gradients = std::vector<std::vector<float>>;
  for (const Gradients& gradients : {Gradients{up, down}, Gradients{zero}}) {
    const std::vector<float> back = workers.exchange(0, gradients);
    double sum = 0;
    for (const float sign : back) {
      CHECK(std::fabs(sign) == 1);
      sum += sign;
    }
    CHECK(std::fabs(sum) < 4 * std::sqrt(2000.0));
  }
}

TEST_CASE("majority: workers send signs of their momentum, which survives a restart", "[fast]") {
  OneMatrix whole(R"j("majority(0.9)")j", 6, 10), resumed(R"j("majority(0.9)")j", 6, 10);
  std::vector<float> m(60);
  for (int step = 0; step < 5; ++step) {
    const auto gradients = noisy_gradients(1, 60, step);
    const std::vector<float> back = whole.exchange(step, gradients);
    for (std::size_t i = 0; i < 60; ++i) {
      m[i] = 0.9f * m[i] + static_cast<float>(1 - 0.9) * gradients[0][i];
      CHECK(back[i] == (m[i] > 0 ? 1 : -1));
    }
  }
  resumed.load(whole.state());
  const auto next = noisy_gradients(1, 60, 5);
  CHECK(resumed.exchange(5, next) == whole.exchange(5, next));
}

}  // namespace numemu::majority_test
