// Learned compression: its phases, what a ring and a server send in each, its state.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::learned_test {

using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

// 20 of 400 values, two dense steps, three of training, codes of 4 values; a fifth as innovation.
constexpr const char* kOptions =
    R"("rule": "learned", "share": 0.05, "dense": 2, "training": 3, "innovation": 0.2)";
constexpr double kPlaces = 20 * 9;  // bits: 400 elements need 9 each

std::string under(const std::string& order) {
  return std::string("{") + kOptions + R"(, "order": ")" + order + "\"}";
}

std::int64_t nonzero(const std::vector<float>& x) {
  return std::ssize(x) - std::ranges::count(x, 0.0f);
}

}  // namespace

TEST_CASE("learned: dense, then values at shared places, then codes", "[fast]") {
  OneMatrix ring(under("ring"), 20, 20), server(under("server"), 20, 20);
  for (int step = 0; step < 8; ++step) {
    INFO("step " << step);
    const auto gradients = noisy_gradients(4, 400, step);
    for (OneMatrix* workers : {&ring, &server}) {
      const std::vector<float> back = workers->exchange(step, gradients);
      const net::WireBits bits = workers->bits;
      if (step < 2) {
        CHECK(bits.sent == 400 * 32);
        CHECK(nonzero(back) == 400);
      } else if (step < 5) {
        CHECK(bits.sent == 20 * 32 + kPlaces / 4);
        CHECK(bits.returned == 20 * 32 + kPlaces);
        CHECK(nonzero(back) == 20);
      } else {
        CHECK(nonzero(back) <= 20);
        const bool codes = workers == &ring;
        // Five codes; of a server the leader's alone, beside 4 values of each with their places.
        CHECK(bits.sent == (codes ? 5 * 32 + kPlaces / 4 : (5 * 32 + kPlaces) / 4 + 4 * (32 + 5)));
        CHECK(bits.returned == (codes ? 5 * 32 : 20 * 32) + kPlaces);
      }
    }
  }
}

TEST_CASE("learned: of a server, what each sends beside the code arrives exactly", "[fast]") {
  OneMatrix one(under("server"), 20, 20);
  std::int64_t exact = 0;
  for (int step = 0; step < 8; ++step) {
    const std::vector<float> before = one.kept("learned/residual");
    const auto gradients = noisy_gradients(1, 400, step);
    const std::vector<float> back = one.exchange(step, gradients);
    if (step < 5) continue;
    for (std::size_t i = 0; i < 400; ++i)
      exact += back[i] != 0 && back[i] == before[i] + gradients[0][i];
  }
  CHECK(exact >= 3 * 4);
}

TEST_CASE("learned: windows are neighbours in the order of the leader's values", "[fast]") {
  // 20 of 400 values are 1 or -1, at other places and of other signs in each step: of five windows
  // in order at most one has both signs, so that one code for each loses at most that one. Windows
  // in the order of places lose up to three quarters.
  constexpr double kUnlearned = 0.05;
  OneMatrix one(R"({"rule": "learned", "share": 0.05, "dense": 0, "training": 100})", 20, 20);
  std::vector<float> gradient, back;
  for (int step = 0; step <= 100; ++step) {
    const std::vector<float> noise = noisy_gradients(1, 400, step)[0];
    gradient.assign(400, 0.0f);
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t place = (i * 19 + static_cast<std::size_t>(step) * 7) % 400;
      gradient[place] = std::copysign(1.0f, noise[place]);
    }
    back = one.exchange(step, {gradient});
  }
  double lost = 0;
  for (std::size_t i = 0; i < 400; ++i) lost += std::pow(double{back[i]} - gradient[i], 2);
  CHECK(lost / 20 <= 0.2 + kUnlearned);
}

TEST_CASE("learned: all of it survives a restart in every phase", "[fast]") {
  for (const int steps : {1, 3, 6}) {
    OneMatrix whole(under("ring"), 20, 20), resumed(under("ring"), 20, 20);
    for (int step = 10; step < 10 + steps; ++step)
      whole.exchange(step, noisy_gradients(3, 400, step));
    resumed.load(whole.state());
    for (int step = 10 + steps; step < 18; ++step) {
      const auto next = noisy_gradients(3, 400, step);
      CHECK(resumed.exchange(step, next) == whole.exchange(step, next));
    }
    CHECK(resumed.state() == whole.state());
  }
}

TEST_CASE("learned: a code longer than its window is refused", "[fast]") {
  CHECK_THROWS_WITH(OneMatrix(R"({"rule": "learned", "window": 4, "code": 5})", 6, 10),
                    Catch::Contains("exchange.code: expected at most exchange.window = 4, not 5"));
}

}  // namespace numemu::learned_test
