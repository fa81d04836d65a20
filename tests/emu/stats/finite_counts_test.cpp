// NaN of both signs and any payload is NaN; the largest number is finite.
#include "emu/stats/finite_counts.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/catch.hpp"

namespace finite_counts_test {

using namespace numemu::stats;

TEST_CASE("NaN, infinities and numbers are counted apart", "[fast]") {
  const float inf = INFINITY, largest = std::numeric_limits<float>::max();
  const std::vector<float> x = {0, -0.0f, 1e-45f, largest, -largest, inf, -inf, inf, NAN, -NAN};
  const FiniteCounts counts = count_finite(x.data(), static_cast<std::int64_t>(x.size()));
  CHECK(counts == FiniteCounts{.of = 10, .nan = 2, .infinite = 3});
  CHECK_FALSE(counts.all_finite());
  CHECK(count_finite(x.data(), 5).all_finite());
  FiniteCounts sum = counts;
  sum += counts;
  CHECK(sum == FiniteCounts{.of = 20, .nan = 4, .infinite = 6});
}

TEST_CASE("numbers are counted at every place of any length", "[fast]") {
  for (std::size_t n = 1; n < 200; ++n) {
    std::vector<float> x(n, 1.0f);
    const auto size = static_cast<std::int64_t>(n);
    REQUIRE(count_finite(x.data(), size) == FiniteCounts{.of = size});
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = i % 2 == 0 ? NAN : -INFINITY;
      REQUIRE(count_finite(x.data(), size) ==
              FiniteCounts{.of = size, .nan = i % 2 == 0, .infinite = i % 2 != 0});
      x[i] = 1;
    }
  }
}

}  // namespace finite_counts_test
