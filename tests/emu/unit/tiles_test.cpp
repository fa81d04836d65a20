// The tile driver: tiles cover every output once, and failures come back to the caller.
#include "emu/unit/tiles.hpp"

#include <omp.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "tests/catch.hpp"

namespace tiles_test {

using namespace numemu::unit;

TEST_CASE("tiles: every output belongs to exactly one tile", "[fast]") {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3, 5}) {
    omp_set_num_threads(threads);
    const std::array<std::int64_t, 3> sizes[] = {
        {1, 1, 1}, {7, 100, 5000}, {600, 1100, 50}, {1, 40, 100000}};
    for (const auto& size : sizes) {
      const std::int64_t rows = size[0], lanes = size[1], k = size[2];
      std::vector<int> hits(rows * lanes, 0);
      for_each_tile(rows, lanes, k, {.rows = 100, .lanes = 128, .granule = 16},
                    [&](const Tile& tile) {
                      for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i)
                        for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j)
                          ++hits[i * lanes + j];
                    });
      CHECK(hits == std::vector<int>(rows * lanes, 1));
    }
  }
  omp_set_num_threads(before);
  for_each_tile(0, 5, 5, {}, [](const Tile&) { FAIL("no outputs, no tiles"); });
}

TEST_CASE("tiles: the side that wastes fewer lanes fills the vectors", "[fast]") {
  CHECK(lanes_are_a(16, 3, 16));  // 16 * 3 lanes beside 16 * 16
  CHECK_FALSE(lanes_are_a(3, 16, 16));
  CHECK_FALSE(lanes_are_a(17, 16, 16));  // 32 * 16 beside 16 * 17
  CHECK(lanes_are_a(64, 32, 16));        // neither wastes one: the longer side
  CHECK_FALSE(lanes_are_a(32, 64, 16));
  CHECK_FALSE(lanes_are_a(32, 32, 16));
}

TEST_CASE("tiles: few multiply-adds stay on one thread", "[fast]") {
  CHECK(threads_for(kParallelMacs - 1) == 1);
  CHECK(threads_for(kParallelMacs) == omp_get_max_threads());
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    CHECK(threads_for(kParallelMacs) == 1);
  }
}

TEST_CASE("tiles: an exception in a tile reaches the caller", "[fast]") {
  const auto fail = [](const Tile& tile) {
    if (tile.row_begin != 0) throw std::runtime_error("tile");
  };
  CHECK_THROWS_AS(for_each_tile(2000, 64, 1000, {}, fail), std::runtime_error);
}

}  // namespace tiles_test
