// What workers share: formulas at their ends, and measurements of vectors by hand.
#include "experiments/learned_compression/shared.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace numemu::shared_test {

using namespace numemu::experiments::learned_compression;

TEST_CASE("shared: formulas", "[fast]") {
  CHECK(information(0) == 0);
  CHECK(information(std::sqrt(0.75)) == Approx(1));
  CHECK(mean_error(0.5, 4) == 0.375);
  CHECK(mean_error(0.5, 1) == 0);
}

TEST_CASE("shared: the mean's error is that of the correlation of the same vectors", "[fast]") {
  const Vectors all = {{1, 2, -3, 0}, {2, 2, -1, 1}, {0, 3, -3, -1}};
  CHECK(mean_error(all) == Approx(mean_error(correlation(all), 3)));
  CHECK(correlation({{1, 2}, {1, 2}}) == 1);
  CHECK(correlation({{1, 0}, {0, 1}}) == 0);
}

TEST_CASE("shared: information of bins, error of the first component", "[fast]") {
  std::vector<float> x, alternating;
  for (int i = 0; i < 4096; ++i) {
    x.push_back(static_cast<float>(i));
    alternating.push_back(static_cast<float>(i % 64 * 64 + i / 64));
  }
  CHECK(binned_information(x, x, 4) == Approx(2).margin(0.01));
  CHECK(binned_information(x, alternating, 4) == Approx(0).margin(0.01));
  CHECK(component_error({1, 1, 2, 2, -3, -3}, 2) == Approx(0).margin(1e-12));
  CHECK(component_error({1, 0, 0, 1, 1, 0, 0, 1}, 2) == Approx(0.5));
  CHECK(relative_error({3, 4}, {3, 0}) == Approx(16.0 / 25));
}

}  // namespace numemu::shared_test
