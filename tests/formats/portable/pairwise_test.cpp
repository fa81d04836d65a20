// The pairwise tree: complete, accurate, and with the shape its header promises.
#include "formats/portable/pairwise.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace pairwise_test {

using namespace numemu;

TEST_CASE("every term is summed once", "[fast]") {
  for (const int n : {0, 1, 63, 64, 65, 127, 128, 129, 1000, 100000}) {
    CHECK(pairwise_sum(n, [](std::int64_t i) { return static_cast<double>(i); }) ==
          0.5 * n * (n - 1.0));
  }
}

TEST_CASE("the tree splits at the multiple of 64 at or above the middle", "[fast]") {
  std::vector<double> x(200);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<double>(i)) * std::pow(10, i % 9);
  const auto leaf = [&](int first, int last) {
    double sum = 0;
    for (int i = first; i < last; ++i) sum += x[i];
    return sum;
  };
  const double expected = (leaf(0, 64) + leaf(64, 128)) + (leaf(128, 192) + leaf(192, 200));
  CHECK(pairwise_sum(200, [&](std::int64_t i) { return x[i]; }) == expected);
}

TEST_CASE("the error grows with the logarithm of the count", "[fast]") {
  constexpr int kCount = 1 << 22;
  const auto term = [](std::int64_t i) { return 1.0 / static_cast<double>(i + 1); };
  long double exact = 0;
  for (std::int64_t i = kCount - 1; i >= 0; --i) exact += static_cast<long double>(term(i));
  // At most 64 additions in a leaf and 16 levels above, each half an ulp; positive terms.
  CHECK(std::abs(pairwise_sum(kCount, term) / static_cast<double>(exact) - 1) < 80 * 0x1p-53);
}

}  // namespace pairwise_test
