// A clock of the test's own: bursts, throttling and noise.
#include "bench/steady_ceiling.hpp"

#include <vector>

#include "tests/catch.hpp"

namespace steady_ceiling_test {

using numemu::bench::SteadyCeiling;

namespace {

int calls = 0;

SteadyCeiling waited(std::function<double()> clock) {
  calls = 0;
  SteadyCeiling ceiling([clock = std::move(clock)] { return ++calls, clock(); });
  ceiling.wait();
  return ceiling;
}

}  // namespace

TEST_CASE("a burst before the clock settles does not become the ceiling", "[fast]") {
  const SteadyCeiling ceiling = waited([] { return calls < 30 ? 100 - calls % 3 * 10 : 60.0; });
  CHECK(ceiling.steady());
  CHECK(ceiling.value() == 60);
  CHECK(calls < 30 + SteadyCeiling::kWindow);
}

TEST_CASE("rounds beside another program do not count", "[fast]") {
  SteadyCeiling ceiling =
      waited([] { return calls > 20 && (calls + 1) / 2 % 2 == 1 ? 30.0 : 60.0; });
  std::vector<double> kept;
  int ran = 0;
  CHECK(ceiling.rounds(
            5, [&] { ++ran; }, [&](double c) { kept.push_back(c); }) == 5);
  CHECK(kept == std::vector<double>(5, 60));
  CHECK(ran > 5);
}

TEST_CASE("a clock that changes for good is waited for, and the rounds counted", "[fast]") {
  for (const double later : {40.0, 90.0}) {
    SteadyCeiling ceiling = waited([&] { return calls <= SteadyCeiling::kWindow ? 60.0 : later; });
    double last = 0;
    CHECK(ceiling.value() == 60);
    CHECK(ceiling.rounds(
              7, [] {}, [&](double c) { last = c; }) == 7);
    CHECK(last == later);
  }
}

TEST_CASE("a clock that never settles gives figures, and the wait ends", "[fast]") {
  SteadyCeiling ceiling = waited([] { return calls % 2 == 0 ? 100.0 : 50.0; });
  CHECK_FALSE(ceiling.steady());
  CHECK(calls == SteadyCeiling::kLimit);
  CHECK(ceiling.rounds(
            3, [] {}, [](double) {}) == 3);
}

}  // namespace steady_ceiling_test
