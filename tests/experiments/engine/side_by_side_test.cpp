// Pieces side by side: their order, errors, and what waits for a long one.
#include "experiments/engine/side_by_side.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

namespace side_by_side_test {

using numemu::experiments::side_by_side;

TEST_CASE("pieces are taken once each, in order, for any number of threads", "[fast]") {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::size_t> taken, squares;
    side_by_side(
        100, threads,
        [](std::size_t k) {
          if (k % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return k * k;
        },
        [&](std::size_t k, std::size_t square) {
          taken.push_back(k);
          squares.push_back(square);
        });
    REQUIRE(taken.size() == 100);
    for (std::size_t k = 0; k < taken.size(); ++k) {
      CHECK(taken[k] == k);
      CHECK(squares[k] == k * k);
    }
  }
  int pieces = 0;
  side_by_side(
      0, 2, [](std::size_t) { return 0; }, [&](std::size_t, int) { ++pieces; });
  CHECK(pieces == 0);
}

TEST_CASE("the first error in order ends the work, those before it are taken", "[fast]") {
  std::vector<std::size_t> taken;
  std::atomic<int> made = 0;
  try {
    side_by_side(
        1000, 3,
        [&](std::size_t k) {
          ++made;
          if (k == 20) std::this_thread::sleep_for(std::chrono::milliseconds(5));
          if (k == 20 || k == 21) throw std::runtime_error("piece " + std::to_string(k));
          return k;
        },
        [&](std::size_t k, std::size_t) { taken.push_back(k); });
    FAIL("expected an error");
  } catch (const std::runtime_error& error) {
    CHECK(error.what() == std::string("piece 20"));
  }
  CHECK(taken.size() == 20);
  CHECK(made < 100);

  CHECK_THROWS_AS(side_by_side(
                      1000, 3, [&](std::size_t k) { return k; },
                      [&](std::size_t k, std::size_t) {
                        if (k == 5) throw std::runtime_error("full");
                      }),
                  std::runtime_error);
}

TEST_CASE("few pieces are made ahead of a long one", "[fast]") {
  std::atomic<std::size_t> farthest = 0;
  std::size_t when_taken = 0;
  side_by_side(
      200, 2,
      [&](std::size_t k) {
        if (k == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (k > farthest) farthest = k;
        return k;
      },
      [&](std::size_t k, std::size_t) {
        if (k == 0) when_taken = farthest;
      });
  CHECK(when_taken <= 8);
}

}  // namespace side_by_side_test
