// The tile driver: as few tiles as the shape allows, but enough for every thread.
#include "emu/unit/tiles.hpp"

#include <omp.h>

#include <algorithm>
#include <exception>

#include "formats/float_guard.hpp"

namespace numemu::unit {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Equal parts of `size` in multiples of `granule`: at least `parts` of them where possible, none
/// above `limit`.
std::int64_t part_size(std::int64_t size, std::int64_t parts, std::int64_t limit,
                       std::int64_t granule) {
  const std::int64_t wanted = std::max(parts, ceil_div(size, limit));
  return std::max(ceil_div(ceil_div(size, wanted), granule) * granule, granule);
}

}  // namespace

int threads_here() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

int threads_for(std::int64_t macs) { return macs < kParallelMacs ? 1 : threads_here(); }

void for_each_tile(std::int64_t rows, std::int64_t lanes, std::int64_t k, const TileShape& shape,
                   const std::function<void(const Tile&)>& body) {
  if (rows <= 0 || lanes <= 0) return;
  const std::int64_t outputs = rows * lanes;
  const int threads = threads_for(k > kParallelMacs / outputs ? kParallelMacs : outputs * k);
  const std::int64_t tile_lanes = part_size(lanes, threads, shape.lanes, shape.granule);
  const std::int64_t across = ceil_div(lanes, tile_lanes);
  const std::int64_t tile_rows = part_size(rows, ceil_div(threads, across), shape.rows, 1);
  const std::int64_t tiles = across * ceil_div(rows, tile_rows);

  const auto run = [&](std::int64_t index) {
    const FloatGuard guard;
    Tile tile;
    tile.row_begin = index / across * tile_rows;
    tile.row_end = std::min(rows, tile.row_begin + tile_rows);
    tile.lane_begin = index % across * tile_lanes;
    tile.lane_end = std::min(lanes, tile.lane_begin + tile_lanes);
    body(tile);
  };
  if (threads == 1) {
    for (std::int64_t i = 0; i < tiles; ++i) run(i);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t i = 0; i < tiles; ++i) {
    try {
      run(i);
    } catch (...) {
#pragma omp critical(numemu_tile_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace numemu::unit
