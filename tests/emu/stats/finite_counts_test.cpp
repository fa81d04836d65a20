// NaN of both signs and any payload is NaN; the largest number is finite.
#include "emu/stats/finite_counts.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/catch.hpp"

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
