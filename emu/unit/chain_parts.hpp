// The tiles of a whole product as rectangles of chains, on several threads.
#pragma once
#include <algorithm>

#include "emu/unit/chain_tile.hpp"
#include "emu/unit/lanes/side.hpp"
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

/// The same of a product of float32 whose longer side lies along the lanes; K is padded to whole
/// instructions.
template <class Run>
void for_each_part(const Gemm& g, const LaneSide& a, const LaneSide& b, std::int64_t instruction,
                   const float* c, const Run& run) {
  const bool swap = g.m > g.n;
  ChainTile<float, float> whole;
  whole.rows = swap ? b.side() : a.side();
  whole.lanes = swap ? a.side() : b.side();
  whole.row_stride = swap ? 1 : g.n;
  whole.lane_stride = swap ? g.n : 1;
  whole.k = (g.k + instruction - 1) / instruction * instruction;
  whole.c = c;
  whole.d = static_cast<float*>(g.d);
  for_each_part(whole, std::min(g.m, g.n), std::max(g.m, g.n), g.k, {.rows = 256, .granule = 16},
                run);
}

}  // namespace numemu::unit
