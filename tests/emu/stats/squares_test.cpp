// Sums of squares: the bits of the pairwise tree, whatever the number of terms.
#include <cmath>
#include <vector>

#include "emu/stats/mean.hpp"
#include "formats/portable/pairwise.hpp"
#include "tests/catch.hpp"

namespace squares_test {

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("sums of squares have the bits of the pairwise tree", "[fast]") {
  std::vector<float> x, y;
  for (int i = 0; i < 5000; ++i) {
    x.push_back(static_cast<float>(std::sin(i) * std::pow(10, i % 9)));
    y.push_back(static_cast<float>(std::cos(i) * std::pow(10, i % 7)));
  }
  std::int64_t wrong = 0;
  for (std::int64_t n = 0; n <= 5000; n += n < 1200 ? 1 : 37) {
    wrong += sum_of_squares(n, x.data()) !=
             pairwise_sum(n, [&](std::int64_t i) { return double{x[i]} * x[i]; });
    wrong += sum_of_squared_differences(n, x.data(), y.data()) !=
             pairwise_sum(
                 n, [&](std::int64_t i) { return (double{x[i]} - y[i]) * (double{x[i]} - y[i]); });
  }
  CHECK(wrong == 0);
}

TEST_CASE("differences are taken in float64", "[fast]") {
  const float x[] = {1, 0x1p-30f}, y[] = {0x1p-40f, 0};
  CHECK(sum_of_squared_differences(1, x, y) == (1 - 0x1p-40) * (1 - 0x1p-40));
  CHECK(sum_of_squares(2, x) == 1 + 0x1p-60);
}

TEST_CASE("values that are not finite stay so", "[fast]") {
  std::vector<float> x(1000, 1);
  x[700] = NAN;
  CHECK(std::isnan(sum_of_squares(1000, x.data())));
  CHECK(sum_of_squares(700, x.data()) == 700);
  x[700] = -INFINITY;
  CHECK(sum_of_squares(1000, x.data()) == HUGE_VAL);
}

}  // namespace squares_test
