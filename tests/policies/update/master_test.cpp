// Parameters in a low-precision format.
#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace master_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("updates are rounded to the master format", "[fast]") {
  const net::Graph graph = two_layers();
  net::Tensor value({1000}, 1.0f);
  const net::Tensor gradient({1000});
  const std::vector<float> delta(1000, 0x1p-10f);
  RecipeNumerics nearest(update_recipe(R"j("master": "bfloat16")j"), graph);
  nearest.update({net::Phase::training}, {"fc1.weight", &value, &gradient, &delta});
  CHECK(value.data == std::vector<float>(1000, 1.0f));  // an eighth of a step: lost
  RecipeNumerics stochastic(update_recipe(R"j("master": "bfloat16", "rounding": "sr(16)")j"),
                            graph);
  stochastic.update({net::Phase::training}, {"fc1.weight", &value, &gradient, &delta});
  const auto up = std::count(value.data.begin(), value.data.end(), 1 + 0x1p-7f);
  const auto down = std::count(value.data.begin(), value.data.end(), 1.0f);
  CHECK(up + down == 1000);
  // Binomial(1000, 1/8): mean 125, deviation 10.5; five of them.
  CHECK(std::abs(static_cast<double>(up) - 125) < 53);
}

}  // namespace master_test
