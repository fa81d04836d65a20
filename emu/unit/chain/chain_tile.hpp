// A rectangle of outputs of a chain, with its two sides in the roles the registers give them.
#pragma once
#include <cstdint>
#include "emu/unit/chain/chain.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end): the lanes fill vectors,
/// the rows are broadcast. Output (i, j) is d[i * row_stride + j * lane_stride]; one of the strides
/// is 1.
template <class T, class Out>
struct ChainTile {
  ChainSide<T> rows, lanes;
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0, k = 0;
  std::int64_t row_stride = 0, lane_stride = 1;
  bool rows_in_place = false;  ///< read each row from its source, packing only the lanes
  const Out* c = nullptr;
  Out* d = nullptr;
};

/// One tile on the calling thread, which must hold a FloatGuard. The best target of this CPU is
/// chosen at run time.
void run_chain_tile(const ChainTile<float, float>&);
void run_chain_tile(const ChainTile<double, float>&);
void run_chain_tile(const ChainTile<double, double>&);

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
