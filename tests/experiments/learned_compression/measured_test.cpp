// What workers share, measured: normal numbers beside the formulas, and a small network.
#include "experiments/learned_compression/measured.hpp"

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

}  // namespace numemu::measured_test
