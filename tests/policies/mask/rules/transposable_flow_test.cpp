// The exact transposable mask against LEMON: the same sum, on every size.
#include <vector>

#include "policies/mask/rules/transposable.hpp"
#include "policies/mask/rules/transposable_greedy.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/min_cost_flow.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace numemu::policies::transposable_flow_test {
namespace {

struct Shape {
  int size, kept;
};
constexpr Shape kShapes[] = {{4, 2}, {6, 3}, {8, 4}, {8, 2}, {16, 8}, {16, 4}, {32, 16}, {32, 8}};

// The number of `tiles` tiles whose mask is not an N:M mask, whose sum is not that of the flow, or
// whose sum the filled greedy mask exceeds.
int wrong(const std::string& law, Shape shape, int tiles, std::uint32_t tensor) {
  const int elements = shape.size * shape.size;
  const std::vector<float> x = testing::sample(law, std::int64_t{tiles} * elements, tensor);
  std::vector<std::int64_t> costs(static_cast<std::size_t>(elements));
  int count = 0;
  for (int t = 0; t < tiles; ++t) {
    const float* tile = x.data() + std::ptrdiff_t{t} * elements;
    const TileUnit unit = tile_unit(tile, elements);
    if (!unit.narrow) {  // what the oracle cannot add up: never with these laws
      count += 1'000'000;
      continue;
    }
    tile_costs(unit, tile, elements, costs.data());
    const TileMask mask = exact_tile(tile, shape.size, shape.kept);
    count += !keeps_exactly(mask, shape.kept);
    count += kept_sum(mask, costs.data()) !=
             numemu::testing::most_by_flow(costs.data(), shape.size, shape.kept);
  }
  return count;
}

// The same for integers of few values.
int wrong_with_ties(Shape shape, int tiles, std::uint32_t tensor) {
  const RandomSource random{.seed = 3, .stream = Stream::vectors, .tensor = tensor};
  std::uint64_t draw = 0;
  std::vector<std::int64_t> costs(static_cast<std::size_t>(shape.size * shape.size));
  int count = 0;
  for (int t = 0; t < tiles; ++t) {
    for (std::int64_t& cost : costs) cost = random.bits(draw++, 32) % (2 + t % 7);
    const TileMask mask = exact_tile(costs.data(), shape.size, shape.kept);
    count += !keeps_exactly(mask, shape.kept);
    count += kept_sum(mask, costs.data()) !=
             numemu::testing::most_by_flow(costs.data(), shape.size, shape.kept);
  }
  return count;
}

TEST_CASE("exact tile: the sum of a min-cost flow", "[fast]") {
  for (const Shape shape : kShapes) {
    const int tiles = shape.size == 32 ? 25 : shape.size == 16 ? 100 : 300;
    INFO(shape.kept << ":" << shape.size);
    CHECK(wrong("normal", shape, tiles, 61) == 0);
    CHECK(wrong_with_ties(shape, tiles / 5, 62) == 0);
  }
}

TEST_CASE("exact tile: the sum of a min-cost flow on 10,000 tiles of 4 x 4", "[fast]") {
  CHECK(wrong("normal", {4, 2}, 10'000, 63) == 0);
}

TEST_CASE("exact tile: the sum of a min-cost flow on 10,000 tiles of 8 x 8", "[fast]") {
  CHECK(wrong("normal", {8, 4}, 10'000, 64) == 0);
}

TEST_CASE("exact tile: the sum of a min-cost flow on 100,000 tiles", "[slow]") {
  for (const Shape shape : kShapes) {
    const int tiles = shape.size == 32 ? 1000 : shape.size == 16 ? 6000 : 12'000;
    INFO(shape.kept << ":" << shape.size);
    CHECK(wrong("normal", shape, tiles, 71) == 0);
    CHECK(wrong("laplace", shape, tiles / 4, 72) == 0);
    CHECK(wrong_with_ties(shape, tiles / 2, 73) == 0);
  }
}

}  // namespace
}  // namespace numemu::policies::transposable_flow_test
