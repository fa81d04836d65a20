// The tile driver of every unit: cuts the outputs into rectangles for OpenMP threads.
#pragma once
#include <cstdint>
#include <functional>

namespace numemu::unit {

/// Below this many multiply-adds a parallel region costs more than it gains (a few microseconds
/// against 20).
constexpr std::int64_t kParallelMacs = 1'000'000;

/// Threads of a loop that begins here: 1 inside a parallel region.
int threads_here();
/// Threads to use for `macs` multiply-adds: 1 inside a parallel region or when they are few.
int threads_for(std::int64_t macs);

/// Outputs [row_begin, row_end) x [lane_begin, lane_end).
struct Tile {
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0;
};

/// How to cut: at most so many rows and lanes, lanes in multiples of the granule.
struct TileShape {
  std::int64_t rows = 512, lanes = 512, granule = 32;
};

/// For references, whose outputs cost the same wherever the cuts are.
constexpr TileShape kReferenceTile{.rows = 16, .lanes = 64, .granule = 1};

/// Whether the m rows of A, not the n columns of B, should fill vectors of `panel` lanes: where
/// that wastes fewer lanes, else where they are more.
inline bool lanes_are_a(std::int64_t m, std::int64_t n, std::int64_t panel) {
  const auto padded = [&](std::int64_t lanes) { return (lanes + panel - 1) / panel * panel; };
  const std::int64_t with_a = padded(m) * n, with_b = padded(n) * m;
  return with_a != with_b ? with_a < with_b : m > n;
}

/// Calls body once per tile of a rows x lanes rectangle, k deep, in any order and on several
/// threads, each under a FloatGuard. What body computes must not depend on how the rectangle is
/// cut. The first exception is thrown again.
void for_each_tile(std::int64_t rows, std::int64_t lanes, std::int64_t k, const TileShape& shape,
                   const std::function<void(const Tile&)>& body);

}  // namespace numemu::unit
