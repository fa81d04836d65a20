// The operands of wgmma: B by a descriptor of shared memory; A, C, D and the metadata by the rows
// of each warp.
#pragma once
#include "emu/oracle/recording/batch.hpp"
#include "tests/oracle/cuda/layout/shared_tile.hpp"

namespace numemu::oracle::recording {

/// Columns of B as rows of k: 32 bytes of k (dense) or 64 (sparse: every k of B), so two or four
/// core matrices side by side.
NUMEMU_HD constexpr SharedTile shared_b(const Instruction& i) {
  return {i.n, i.k * info(i.b).bytes};
}

/// PTX ISA: matrix-descriptor-encode.
NUMEMU_HD constexpr std::uint64_t descriptor_field(std::uint32_t bytes) {
  return (bytes & 0x3FFFFU) >> 4;
}

/// The 64-bit matrix descriptor of wgmma, no swizzle. Every field holds bytes / 16 of 18 bits:
///
///     13-0   address in shared memory
///     29-16  leading offset     K-major without swizzle: from a core matrix to the next along k
///     45-32  stride offset      K-major: from eight rows (columns of B) to the next eight
///     51-49  base offset        swizzled layouts only: 0
///     63-62  swizzle            0: none
///
/// PTX ISA, "Matrix Descriptor Format", gives the bits; "Leading Dimension Byte Offset" says that
/// for K-major without swizzle it leads from the first to the second column of the 8x2 tile of
/// 16-byte elements (a column of that tile is a core matrix), "Stride Dimension Byte Offset" that
/// it leads from 8 rows to the next 8; its tf32 example of 16 rows has LBO 256 along k, SBO 128.
/// CuTe (cute/arch/mma_sm90_desc.hpp) has the same bits and calls LBO the step between the two
/// columns of the brick and SBO that between groups of 8 rows; its canonical layout
/// (cute/atom/mma_traits_sm90_gmma.hpp, make_gmma_desc<Major::K>, INTERLEAVE) is
/// ((8,n),2):((1,SBO),LBO) in 16-byte units. Both agree: LBO is the step along k. Four columns
/// (sparse) are taken in steps of LBO too: ((8,m),(T,2k)) has one stride for all 2k of them, and
/// CuTe reads LBO off such a layout.
///
/// With N = 8 no step along N is ever taken, and shared_b has both steps equal to 128 bytes, so
/// that a descriptor read the other way round names the same bytes.
NUMEMU_HD constexpr std::uint64_t wgmma_descriptor(std::uint32_t address, const SharedTile& tile) {
  return descriptor_field(address) |
         descriptor_field(static_cast<std::uint32_t>(tile.along_k())) << 16 |
         descriptor_field(static_cast<std::uint32_t>(tile.along_rows())) << 32;
}

/// One tile as warp w of four sees it: rows 16w to 16w + 15 of A, C, D and the metadata, all of B.
/// Within them the fragments are those of an m16 mma: PTX ISA "Register Fragments" (figures
/// "WGMMA .m64nNk16 register fragment layout" and their like) and CuTe's ALayout_64x8 to
/// ALayout_64x64 and CLayout_64x8, whose thread shape (4,8,4) gives the warp a stride of 16 rows.
/// The metadata too: CuTe's ELayout_64x64 is that of mma.sp m16n8k64 (mma_traits_sm120_sparse.hpp)
/// with the warp's 16 rows added.
NUMEMU_HD inline Tiles warp_rows(const Instruction& i, const Tiles& tiles, int tile, int warp) {
  const TileBytes bytes = tile_bytes(i);
  const auto at = static_cast<std::size_t>(tile);
  const auto quarter = static_cast<std::size_t>(warp);
  Tiles rows = tiles;
  rows.a += at * bytes.a + quarter * (bytes.a / 4);
  rows.b += at * bytes.b;
  rows.c += at * bytes.c + quarter * (bytes.c / 4);
  rows.metadata += at * bytes.metadata + quarter * (bytes.metadata / 4);
  rows.d += at * bytes.d + quarter * (bytes.d / 4);
  rows.count = 1;
  return rows;
}

}  // namespace numemu::oracle::recording
