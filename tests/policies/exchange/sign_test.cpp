// Scaled signs with error feedback: two steps by hand, the error of one step, what is not finite.
#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::sign_test {

using namespace numemu::policies::test;

TEST_CASE("sign: two steps by hand", "[fast]") {
  OneMatrix worker(R"("sign")", 2, 2);
  CHECK(worker.exchange(0, {{1, -2, 0.5f, 0.5f}}) == std::vector<float>{1, -1, 1, 1});
  CHECK(worker.kept("sign") == std::vector<float>{0, -1, -0.5f, -0.5f});
  CHECK(worker.bits.sent == 4 + 32);
  CHECK(worker.exchange(1, {{0, 0, 0, 2.5f}}) ==
        std::vector<float>{0.875f, -0.875f, -0.875f, 0.875f});
  CHECK(worker.kept("sign") == std::vector<float>{-0.875f, -0.125f, 0.375f, 1.125f});
}

TEST_CASE("sign: a step leaves |x|^2 - |x|_1^2 / n", "[fast]") {
  OneMatrix worker(R"("sign")", 40, 50);
  const auto gradients = noisy_gradients(1, 2000, 0);
  worker.exchange(0, gradients);
  double sum = 0, squares = 0, left = 0;
  for (const float x : gradients[0]) {
    sum += std::fabs(double{x});
    squares += double{x} * x;
  }
  for (const float x : worker.kept("sign")) left += double{x} * x;
  CHECK(left == Approx(squares - sum * sum / 2000).epsilon(1e-6));
}

TEST_CASE("sign: what is not finite travels as it is", "[fast]") {
  OneMatrix worker(R"("sign")", 2, 2);
  const std::vector<float> back = worker.exchange(0, {{2, NAN, HUGE_VALF, -2}});
  CHECK(back[0] == 1);
  CHECK(std::isnan(back[1]));
  CHECK(back[2] == HUGE_VALF);
  CHECK(worker.kept("sign") == std::vector<float>{1, 0, 0, -1});
}

}  // namespace numemu::sign_test
