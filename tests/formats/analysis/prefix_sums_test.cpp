// Sums that are kept now and then and continued, against sums that are all kept.
#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/analysis/scale_mse.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace prefix_sums_test {

using namespace numemu;

namespace {

/// All of them, one sum after the other.
struct Kept {
  std::vector<double> high = {0}, low = {0};
  void add(double next) {
    const double sum = high.back() + next, other = sum - high.back();
    low.push_back(low.back() + ((high.back() - (sum - other)) + (next - other)));
    high.push_back(sum);
  }
  double between(std::size_t first, std::size_t last) const {
    return (high[last] - high[first]) + (low[last] - low[first]);
  }
};

}  // namespace

TEST_CASE("prefix sums do not depend on how many of them are kept", "[fast]") {
  const RandomSource random{.seed = 6};
  for (const std::size_t n : {0, 1, 7, 8, 9, 16, 100}) {
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i)
      x[i] = static_cast<float>(std::ldexp(random.uniform(i), static_cast<int>(i % 50) - 40));
    std::sort(x.begin(), x.end());
    Kept sums, squares;
    for (const float v : x) {
      sums.add(v);
      squares.add(double{v} * v);
    }
    const PrefixSums<float> prefix(x.data(), n);
    std::int64_t differ = 0;
    for (std::size_t first = 0; first <= n; ++first) {
      for (std::size_t last = first; last <= n; ++last) {
        const auto [one, two] = prefix.between(x.data(), first, last);
        differ += one != sums.between(first, last) || two != squares.between(first, last);
      }
    }
    CHECK(differ == 0);
  }
}

using numemu::first_outside;

TEST_CASE("the first index outside is that of a walk", "[fast]") {
  for (std::size_t size = 0; size <= 40; ++size) {
    for (std::size_t first = 0; first <= size; ++first) {
      for (std::size_t limit = 0; limit <= size + 1; ++limit) {
        const auto inside = [&](std::size_t i) { return i < limit; };
        std::size_t walked = first;
        while (walked < size && inside(walked)) ++walked;
        REQUIRE(first_outside(first, size, inside) == walked);
      }
    }
  }
}

TEST_CASE("no index beyond the end is asked for, and few before it", "[fast]") {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, kSize / 3, kSize - 1, kSize}) {
    std::size_t asked = 0;
    const std::size_t found = first_outside(0, kSize, [&](std::size_t i) {
      REQUIRE(i < kSize);
      ++asked;
      return i < limit;
    });
    CHECK(found == limit);
    CHECK(asked <= 2 * 20 + 2);  // as many doublings and halvings as the size has bits
  }
}

}  // namespace prefix_sums_test
