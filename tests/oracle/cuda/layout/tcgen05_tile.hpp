// The places of a tile for tcgen05.mma: A and B in shared memory; C, D, metadata and scales in
// tensor memory.
#pragma once
#include "emu/oracle/recording/batch.hpp"
#include "tests/oracle/cuda/layout/shared_tile.hpp"
#include "tests/oracle/cuda/layout/tcgen05_idesc.hpp"

namespace numemu::oracle::recording::tcgen05 {

/// Sixteen bytes of a row of A or a column of B ("row" below), a row of a core matrix.
struct alignas(16) Chunk {
  std::uint32_t word[4];
};

/// FP6 and FP4 of the 8-bit kinds stand 16 to a chunk, packed from its lowest bit, and leave a gap
/// above; FP4 of mxf4 and mxf4nvf4 leaves none. Sources: PTX ISA, "Packing formats" (pictures say
/// where the gap is); CUDA driver API, cuTensorMapEncodeTiled, which copies to that form: gaps of 8
/// and 4 bytes after 8 and 12 packed ones (16U4_ALIGN16B, 16U6_ALIGN16B).
NUMEMU_HD constexpr int chunk_elements(const Instruction& i, Element e) {
  if (packs_fp4(mma_kind(i))) return 32;
  return info(e).bits < 8 ? 16 : 128 / info(e).bits;
}
/// 32 bytes of K a row; of a sparse instruction 64 a column of B. Sources for steps along K without
/// swizzle: PTX ISA, "Canonical layouts": ((8,m),(T,2k)):((1T,SBO),(1,LBO)); CuTe
/// mma_traits_sm100.hpp, make_umma_desc, reads LBO and SBO off such a layout.
NUMEMU_HD constexpr SharedTile shared_a(const Instruction& i) {
  return {i.m, i.kept() / chunk_elements(i, i.a) * kCoreRowBytes};
}
NUMEMU_HD constexpr SharedTile shared_b(const Instruction& i) {
  return {i.n, i.k / chunk_elements(i, i.b) * kCoreRowBytes};
}

/// The elements whose codes start at `codes`.
NUMEMU_HD inline Chunk pack_chunk(const Instruction& i, Element e, const std::uint8_t* codes) {
  const ElementInfo element = info(e);
  Chunk chunk{};
  for (int j = 0; j < chunk_elements(i, e); ++j) {
    const std::uint64_t code = load_code(codes + j * element.bytes, element.bytes);
    const int bit = j * element.bits;
    chunk.word[bit / 32] |= static_cast<std::uint32_t>(code << bit % 32);
    if (bit % 32 + element.bits > 32)
      chunk.word[bit / 32 + 1] |= static_cast<std::uint32_t>(code >> (32 - bit % 32));
  }
  return chunk;
}

/// Sources: PTX ISA, "Shared memory descriptor"; CuTe mma_sm100_desc.hpp, SmemDescriptor. In units
/// of 16 bytes: start at bit 0, leading offset (along K) at 16, stride offset (to the next eight
/// rows) at 32; the constant 1 at bit 46; zero stand base offset, relative mode, no swizzle.
NUMEMU_HD constexpr std::uint64_t shared_descriptor(std::uint32_t start, const SharedTile& tile) {
  const auto units = [](std::uint32_t bytes) { return std::uint64_t{(bytes & 0x3FFFF) >> 4}; };
  return units(start) | units(static_cast<std::uint32_t>(tile.along_k())) << 16 |
         units(static_cast<std::uint32_t>(tile.along_rows())) << 32 | std::uint64_t{1} << 46;
}

/// Columns of tensor memory that a tile takes of its allocation (32 are the least there is).
/// Metadata and scales take four each; CuTe aligns metadata so.
constexpr int kTensorColumns = 32;
constexpr int kColumnOfD = 0;
constexpr int kColumnOfMetadata = 8;
constexpr int kColumnOfScaleA = 12;
constexpr int kColumnOfScaleB = 16;

/// The row of D in a lane, -1: none; column n of D stands in column n, one 32-bit cell each, f16 in
/// its low half. M = 128 fills the 128 lanes, M = 64 the lower half of every 32. Sources: PTX ISA,
/// "Data path layout organization" D and F, "Packing format for matrix D"; CuTe
/// mma_traits_sm100.hpp, tmem_frg: (128,N):(1,128) and ((16,4),N):((1,32),128).
NUMEMU_HD constexpr int row_of_lane(const Instruction& i, int lane) {
  if (i.m == 128) return lane;
  return lane % 32 < 16 ? lane / 32 * 16 + lane % 16 : -1;
}

/// 16 bits of the metadata of a row, the part-th: four words of four bits, the first lowest.
NUMEMU_HD inline std::uint32_t metadata_half(const Instruction& i, const std::uint8_t* metadata,
                                             int row, int part) {
  std::uint32_t half = 0;
  for (int n = 0; n < 4; ++n)
    half |= static_cast<std::uint32_t>(metadata[row * i.groups() + 4 * part + n] & 15) << (4 * n);
  return half;
}

/// A cell of metadata: 8-bit kinds hold a row in its lane, two parts a cell. f16 and tf32 hold rows
/// r and r + 8 in one cell and the two parts in lanes r and r + 8; they need one column, and every
/// column holds it, so that the sparsity selector decides nothing.
/// Sources for M = 128: PTX ISA, "Sparsity selector" (pictures); CuTe mma_traits_sm100.hpp,
/// tmem_e_frg, for all; JAX, format_tcgen05_sparse_metadata, for f16. For M = 64 CuTe has only .ws
/// instructions, alike within 16 rows; that rows 16 q stand in lanes 32 q, as those of D do, is the
/// PTX ISA's rule "the same alignment across A, D and metadata" and one report of a sparse
/// compiler back end that was run for f16 and 8 bits (not tf32) on compute capability 11.0.
NUMEMU_HD inline std::uint32_t metadata_cell(const Instruction& i, const std::uint8_t* metadata,
                                             int lane, int column) {
  const bool paired = info(i.a).bits > 8;
  const int row = row_of_lane(i, paired ? lane & ~8 : lane);
  if (row < 0 || (!paired && column > 1)) return 0;
  const int low_part = paired ? lane / 8 % 2 : 2 * column;
  const std::uint32_t low = metadata_half(i, metadata, row, low_part);
  const std::uint32_t high = paired ? metadata_half(i, metadata, row + 8, low_part)
                                    : metadata_half(i, metadata, row, low_part + 1);
  return low | high << 16;
}

/// A cell of scales: lane l of every 32 holds row l + 32 column; block s of K in byte s, repeated
/// where there are fewer than four, so that the scale ids decide nothing. Sources: PTX ISA, "Scale
/// factor A ID", "Scale factor B ID" (pictures; "duplicated to all 32 lane partitions"); CuTe
/// mma_traits_sm100.hpp, tmem_sf_frg: ((32,MN/32),4),(VS,NSF):((1,512),32),(0,128) in bytes.
NUMEMU_HD inline std::uint32_t scale_cell(const Instruction& i, const std::uint8_t* scales,
                                          int rows, int lane, int column) {
  const int row = lane % 32 + 32 * column;
  std::uint32_t cell = 0;
  if (row < rows)
    for (int s = 0; s < 4; ++s)
      cell |= static_cast<std::uint32_t>(scales[row * i.scales() + s % i.scales()]) << (8 * s);
  return cell;
}

}  // namespace numemu::oracle::recording::tcgen05
