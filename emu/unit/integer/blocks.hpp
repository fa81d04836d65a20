// A product cut into tiles for threads, slices of the depth and blocks of 32 x 32 outputs.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "emu/unit/integer/block.hpp"
#include "emu/unit/integer/elements.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

/// One block and one slice of its depth, packed.
struct PackedBlock {
  Block block;                   ///< of the first planes; `sums`, `from_zero` are the caller's
  std::int64_t plane_bytes = 0;  ///< from the tiles of one plane to those of the next
  std::int64_t row = 0, lane = 0, depth = 0;  ///< where the block and its slice begin
  bool first = true, last = true;             ///< slice of the depth
  void* state = nullptr;                      ///< kept from slice to slice, 64-byte aligned
};

/// What to cut. Each side has one or more planes: the same gather over other elements.
struct BlockProduct {
  const std::vector<Elements>&rows, &lanes;
  TileShape shape{.rows = 512, .lanes = 512, .granule = kBlock};
  std::int64_t slice_chunks = 16;  ///< of the depth at a time: 512 rows are then 512 KiB
  std::int64_t state_bytes = 0;    ///< per block
  BlockKernel kernel = {};         ///< its enter() and leave() are called around a thread's blocks
};

/// Calls body for every block and slice, the slices of a block in ascending order on one thread. A
/// product of no depth has one empty slice.
void for_each_block(const BlockProduct&, const std::function<void(const PackedBlock&)>& body);

/// Asks for a block of D before its products are computed, so that its stores find it in the cache.
/// Elements have `bytes` bytes, rows `n` elements.
void prefetch_outputs(const PackedBlock&, const void* d, int bytes, std::int64_t n);

/// A tile is 16 rows x 16 words of 4 bytes, a word holding consecutive depths.
enum class TileForm : std::uint8_t {
  rows,   ///< word w of row r at 16 r + w: rows are broadcast, or the first operand of AMX
  lanes,  ///< word w of row r at 16 w + r: rows fill vectors, or the second operand of AMX
};

/// Bytes that packing may write beyond a panel.
constexpr std::int64_t kPackSlack = kChunkBytes;

/// Rows [first, first + 16) of chunks [begin, end): one tile per chunk, in order. Rows and depths
/// that do not exist are zero (kernels look their words up in tables).
void pack_panel(const Elements&, std::int64_t first, std::int64_t begin, std::int64_t end, TileForm,
                std::uint8_t* tiles);

/// Rows packed at a time where bytes of neighbouring rows fill cache lines.
constexpr std::int64_t kPackRows = 64;

/// Whether chunks [begin, end) of rows [first, first + kPackRows) are such lines, at depths that
/// mostly are not neighbours.
bool has_lines(const Elements&, std::int64_t first, std::int64_t begin, std::int64_t end);

/// Packs them as lanes: what pack_panel() writes for each panel of 16, panels `stride` bytes apart.
void pack_lines(const Elements&, std::int64_t first, std::int64_t begin, std::int64_t end,
                std::uint8_t* tiles, std::int64_t stride);

}  // namespace numemu::unit
