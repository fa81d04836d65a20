// The tiles of a whole product as rectangles of chains, on several threads.
#pragma once
#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

/// run(part) for tiles that cover the outputs of `whole`.
template <class T, class Out, class Run>
void for_each_part(const ChainTile<T, Out>& whole, std::int64_t rows, std::int64_t lanes,
                   std::int64_t depth, const TileShape& shape, const Run& run) {
  for_each_tile(rows, lanes, depth, shape, [&](const Tile& tile) {
    ChainTile<T, Out> part = whole;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.lane_begin = tile.lane_begin;
    part.lane_end = tile.lane_end;
    run(part);
  });
}

}  // namespace numemu::unit
