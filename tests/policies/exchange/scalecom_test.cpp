// ScaleCom: workers take turns to choose the places, the bits of places are the leader's, the
// residual passes a filter.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::scalecom_test {

using namespace numemu::policies::test;

namespace {

std::vector<std::size_t> sent_places(const std::vector<float>& mean) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    if (mean[i] != 0) places.push_back(i);
  }
  return places;
}

}  // namespace

TEST_CASE("scalecom: workers take turns to choose the places", "[fast]") {
  OneMatrix workers(R"j("scalecom(0.2)")j", 2, 5);
  for (int step = 0; step < 7; ++step) {
    const auto gradients = noisy_gradients(3, 10, step);
    std::vector<std::vector<float>> fed;
    for (int w = 0; w < 3; ++w) {
      fed.push_back(workers.kept("scalecom", w));
      for (std::size_t i = 0; i < 10; ++i) fed.back()[i] += gradients[w][i];
    }
    const std::vector<float>& leader = fed[static_cast<std::size_t>(step % 3)];
    std::vector<std::size_t> order(10);
    for (std::size_t i = 0; i < 10; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::fabs(leader[a]) > std::fabs(leader[b]);
    });
    order.resize(2);
    std::sort(order.begin(), order.end());
    const std::vector<float> mean = workers.exchange(step, gradients);
    CHECK(sent_places(mean) == order);
    for (const std::size_t i : order)
      CHECK(mean[i] == Approx((fed[0][i] + fed[1][i] + fed[2][i]) / 3).epsilon(1e-6));
    // Two values of each of three workers, and of one its places of 4 bits.
    CHECK(workers.bits.sent == Approx((3 * 2 * 32 + 2 * 4) / 3.0));
    CHECK(workers.bits.returned == 2 * 32);
  }
}

TEST_CASE("scalecom: what a step leaves passes a low-pass filter", "[fast]") {
  OneMatrix worker(R"j("scalecom(0.25,0.5)")j", 1, 4);
  CHECK(worker.exchange(0, {{1, 8, 2, 4}}) == std::vector<float>{0, 8, 0, 0});
  CHECK(worker.kept("scalecom") == std::vector<float>{0.5f, 0, 1, 2});
  CHECK(worker.exchange(1, {{0, 1, 2, 4}}) == std::vector<float>{0, 0, 0, 6});
  // m / 2 + (m + g - sent) / 2
  CHECK(worker.kept("scalecom") == std::vector<float>{0.5f, 0.5f, 2, 1});
}

}  // namespace numemu::scalecom_test
