// The place of each byte of a tile in shared memory for an instruction that reads it by a
// descriptor: K-major, no swizzle.
#pragma once
#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// A core matrix is 8 rows (columns of B) of 16 bytes of k, row after row: 128 bytes in a row.
constexpr int kCoreRows = 8;
constexpr int kCoreRowBytes = 16;

/// A tile whose rows run along k, cut into core matrices that touch each other along the rows:
///
///     offset(row, byte) = (row mod 8) * 16 + (row / 8) * along_rows()
///                       + (byte mod 16)    + (byte / 16) * along_k()
///
/// which is PTX ISA's canonical layout without swizzle, ((8,m),(T,2k)):((1T,SBO),(1,LBO)) in
/// elements of 16/T bytes, in the order of its example "K-Major, no-swizzling and tf32 type". A
/// tile of 8 rows is then plain columns of 16 bytes by 8.
struct SharedTile {
  int rows;       ///< a multiple of 8
  int row_bytes;  ///< a multiple of 16

  NUMEMU_HD constexpr int bytes() const { return rows * row_bytes; }
  /// From a core matrix to the one that follows it along k.
  NUMEMU_HD constexpr int along_k() const { return rows * kCoreRowBytes; }
  /// From a core matrix to the one of the next eight rows.
  NUMEMU_HD constexpr int along_rows() const { return kCoreRows * kCoreRowBytes; }

  NUMEMU_HD constexpr int place(int row, int byte) const {
    return row % kCoreRows * kCoreRowBytes + row / kCoreRows * along_rows() + byte % kCoreRowBytes +
           byte / kCoreRowBytes * along_k();
  }
};

}  // namespace numemu::oracle::recording
