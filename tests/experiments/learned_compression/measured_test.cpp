// What workers share, measured: normal numbers beside the formulas, and a small network.
#include "experiments/learned_compression/learned_compression.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace numemu::measured_test {

using namespace numemu::experiments;
using namespace numemu::experiments::learned_compression;

TEST_CASE("measured: normal workers lose what their correlation says", "[fast]") {
  const Shared shared = measure_normal(4, 0.75, 20'000, 1);
  CHECK(shared.correlation == 0.75);
  CHECK(shared.mean == Approx(mean_error(0.75, 4)).margin(0.01));
  CHECK(shared.component == Approx(mean_error(0.75, kWindow)).margin(0.01));
  CHECK(shared.information == Approx(information(0.75)).margin(0.05));
}

TEST_CASE("measured: windows in the order of their values lose little", "[fast]") {
  const net::Dataset data = experiments::testing::small_dataset();
  const Shared shared = measure_network(data, "mlp", 2, 0.05, 1);
  CHECK(shared.correlation > 0);
  CHECK(shared.correlation < 1);
  CHECK(shared.component < 0.1);  // independent values: 3/4
  CHECK(shared.autoencoder >= shared.component);
  CHECK_THROWS_AS(measure_network(data, "none", 2, 0.05, 1), Error);
}

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

}  // namespace numemu::measured_test
