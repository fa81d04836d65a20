// The registers of a warp or a warpgroup for one tile: filled and emptied on the host with the
// functions that the kernels call.
#pragma once
#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

struct TileRegisters {
  int lanes = 0;
  std::vector<std::uint64_t> a, b, c, d;                  ///< [lane][register]
  std::vector<std::uint32_t> metadata, scale_a, scale_b;  ///< [lane]
  std::vector<std::uint8_t> shared;                       ///< wgmma: shared memory
  std::uint64_t descriptor = 0;                           ///< wgmma: of B in it
};

/// Whether the operands travel in registers: mma, mma.sp, block scales, wgmma, wgmma.sp.
bool has_fragments(Kind);

/// The arrays of one tile of a batch.
Tiles tile_of(Batch&, int tile);

/// Before the instruction; D is zero.
TileRegisters gather_tile(const Instruction&, const Tiles& tile);
/// After it.
void scatter_tile(const Instruction&, const TileRegisters&, const Tiles& tile);

}  // namespace numemu::oracle::recording
