// Random places: shared by all workers, drawn anew in each step, each as likely as the others.
#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::randomk_test {

using namespace numemu::policies::test;

TEST_CASE("randomk: workers share places that change from step to step", "[fast]") {
  constexpr int kSteps = 400;
  OneMatrix workers(R"j("randomk(0.1)")j", 6, 10);
  std::vector<int> chosen(60);
  std::vector<std::vector<float>> gradients(2, std::vector<float>(60, 1));
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> mean = workers.exchange(step, gradients);
    const std::vector<float> first = workers.kept("randomk", 0),
                             second = workers.kept("randomk", 1);
    int count = 0;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      count += mean[i] != 0;
      chosen[i] += mean[i] != 0;
      CHECK((first[i] == 0) == (mean[i] != 0));
      CHECK(first[i] == second[i]);
    }
    CHECK(count == 6);
  }
  CHECK(workers.bits.sent == 6 * 32);  // no places
  // Five standard deviations of a binomial law: one of 60 places leaves them with 4e-5.
  for (const int n : chosen) CHECK(std::abs(n - kSteps / 10) < 5 * std::sqrt(kSteps * 0.1 * 0.9));
}

TEST_CASE("randomk: at least one element is sent, and all of a whole share", "[fast]") {
  OneMatrix one(R"j("randomk(0.000001)")j", 2, 3), all(R"j("randomk(1)")j", 2, 3);
  const auto gradients = noisy_gradients(1, 6, 0);
  one.exchange(0, gradients);
  CHECK(one.bits.sent == 32);
  CHECK(all.exchange(0, gradients) == gradients[0]);
}

}  // namespace numemu::randomk_test
