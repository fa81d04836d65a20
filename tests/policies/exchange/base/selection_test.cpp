// The largest elements against a sort, with ties and NaN; what is kept of a tensor.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "formats/random.hpp"
#include "policies/exchange/base/rule.hpp"
#include "tests/catch.hpp"

namespace numemu::selection_test {
namespace {

using policies::largest;

/// The definition: all places sorted by magnitude, then by place.
std::vector<std::size_t> by_sorting(const std::vector<float>& x, std::size_t count) {
  std::vector<std::size_t> places(x.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto magnitude = [&](std::size_t i) {
    return std::isnan(x[i]) ? std::numeric_limits<float>::infinity() : std::fabs(x[i]);
  };
  std::ranges::stable_sort(
      places, [&](std::size_t a, std::size_t b) { return magnitude(a) > magnitude(b); });
  places.resize(count);
  std::ranges::sort(places);
  return places;
}

TEST_CASE("largest: the places of a sort, ascending, also among equal magnitudes", "[fast]") {
  const RandomSource random{3, Stream::init, 7};
  for (const std::uint32_t values : {1u, 3u, 20u, 1u << 20}) {  // few values: many equal ones
    for (const std::size_t n : {1, 2, 7, 300}) {
      std::vector<float> x(n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t counter = values * 1000 + n * 1000 + i;
        x[i] = static_cast<float>(std::floor(random.uniform(counter) * values) - values / 2);
      }
      for (std::size_t count = 1; count <= n; ++count)
        REQUIRE(largest(x, count) == by_sorting(x, count));
    }
  }
}

TEST_CASE("largest: NaN is the largest", "[fast]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(largest(std::vector{1.0f, -nan, -5.0f, nan, 2.0f}, 3) == std::vector<std::size_t>{1, 2, 3});
}

TEST_CASE("sort_by_value: the least first, zeros are equal, NaN beyond the infinities", "[fast]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {2, 0, -3, -0.0f, nan, -inf, inf, -nan, 7};
  std::vector<std::size_t> places = {6, 4, 3, 1, 0, 7, 5, 2};
  policies::sort_by_value(places, x);
  CHECK(places == std::vector<std::size_t>{7, 5, 2, 3, 1, 0, 6, 4});
}

TEST_CASE("keep_only: other places hold zero", "[fast]") {
  std::vector<float> x = {1, -2, 3, 4};
  policies::keep_only({1, 3}, x);
  CHECK(x == std::vector<float>{0, -2, 0, 4});
}

}  // namespace
}  // namespace numemu::selection_test
