// The inner kernels of integer products: up to 32 x 32 outputs over a slice of the depth.
#pragma once
#include <cstdint>

#include "emu/unit/integer/elements.hpp"

namespace numemu::unit {

constexpr std::int64_t kBlock = 32;  ///< rows and lanes of a block: two tiles each

/// sums[sum_stride i + j] of rows i and lanes j, from packed tiles: `rows` in TileForm::rows,
/// `lanes` in TileForm::lanes, one tile per chunk and 16 rows.
struct Block {
  const std::uint8_t *rows = nullptr, *lanes = nullptr;
  std::int64_t row_stride = 0, lane_stride = 0;  ///< bytes from one panel of 16 to the next
  std::int64_t row_count = 0, lane_count = 0;
  std::int64_t depth = 0;  ///< products of the slice
  bool from_zero = true;   ///< else added to `sums`
  /// More pairs of planes added to the same sums, rows `plane_step` bytes further on each time and
  /// lanes as many back; AMX only.
  std::int64_t more_planes = 0, plane_step = 0;
  std::int32_t* sums = nullptr;
  std::int64_t sum_stride = kBlock;  ///< another one only for kernels that document it
  const std::int32_t* table = nullptr;
};
/// Sums are exact modulo 2^32. Outputs beyond row_count and lane_count may be written.
using BlockFunction = void (*)(const Block&);

/// A kernel and what a thread must do before its first block and after its last one.
struct BlockKernel {
  BlockFunction run = nullptr;
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
  bool strided_sums = false;  ///< follows Block::sum_stride
};

bool has_amx();
/// Bytes, each side signed or unsigned. Both functions: only where has_amx().
BlockKernel amx_kernel(bool rows_unsigned, bool lanes_unsigned);

bool has_vnni();
/// Rows are int8 less `zero_rows`, lanes uint8 less `zero_lanes`: what was taken off is added
/// again. Pairs: int16 on both sides.
enum class ByteZeros : std::uint8_t { none, lanes, rows, both };
constexpr int kZeroRows = 128, kZeroLanes = -128;
BlockKernel vnni_bytes_kernel(ByteZeros);
BlockKernel vnni_pairs_kernel();

BlockKernel portable_pairs_kernel();  ///< int16 pairs
BlockKernel portable_signs_kernel();  ///< bits: agreements less disagreements
BlockKernel portable_table_kernel();  ///< words: table[row word + lane word]

}  // namespace numemu::unit
