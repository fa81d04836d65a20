// Packs gathered elements into the tiles that the integer kernels read.
#pragma once
#include <cstdint>

#include "emu/unit/integer/elements.hpp"

namespace numemu::unit {

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
