// Tiles of a product of float32 whose longer side lies along the lanes.
#pragma once
#include <algorithm>

#include "emu/unit/chain_tile.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

/// run(part) for tiles that cover D, on several threads; K is padded to whole instructions.
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
  for_each_tile(std::min(g.m, g.n), std::max(g.m, g.n), g.k, {.rows = 256, .granule = 16},
                [&](const Tile& t) {
                  ChainTile<float, float> part = whole;
                  part.row_begin = t.row_begin;
                  part.row_end = t.row_end;
                  part.lane_begin = t.lane_begin;
                  part.lane_end = t.lane_end;
                  run(part);
                });
}

}  // namespace numemu::unit
