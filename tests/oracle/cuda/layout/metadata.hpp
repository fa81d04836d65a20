// The places of the metadata words of a 2:4 sparse tile in the lanes of a warp: the operand of
// mma.sp and wgmma.sp, sparsity selector 0.
#pragma once
#include "tests/oracle/cuda/layout/fragment.hpp"

namespace numemu::oracle::recording {

/// A four-bit word of metadata: its row of A (0..15 within a warp) and its group within the row.
struct MetadataPlace {
  int row, group;  ///< row -1: the instruction reads no metadata from this lane
};

/// Lanes of a group of four whose register is read: 1, 2 or 4, the first ones (selector 0).
NUMEMU_HD constexpr int metadata_lanes(const Instruction& i) { return i.groups() / 4; }

/// Eight words stand in a register, word 0 in its low bits; each is of one group of A, the index of
/// the first kept element (or pair) in its low two bits (PTX ISA, "Sparse matrix storage"). Lane l
/// is thread t = l mod 4 of group g = l / 4.
///  - 16 bits and tf32: words 0 to 3 are of row g, 4 to 7 of row g + 8, both of groups 4t onward.
///  - 8 and 4 bits: all are of row g + 8 (t mod 2), of groups 8 (t div 2) onward.
/// wgmma.sp: the same in each warp, for its 16 rows.
///
/// How many lanes are read is in the text of PTX ISA for every shape: one of four for 16-bit k16
/// and tf32 k8, a pair for 16-bit k32, tf32 k16, 8-bit k32 and 4-bit k64, all for 8-bit k64 and
/// 4-bit k128. What they hold is in its figures, and in these sources (CuTe's are ELayouts of
/// mma_traits_sm120_sparse.hpp and mma_traits_sm90_gmma_sparse.hpp; reorder_meta, of CUTLASS's
/// host_reorder.h, feeds ldmatrix; load_fragment_e is Choreo's; ptxas is 13.0 for sm_90):
///
///     16-bit k32   CuTe 64x32, reorder_meta, TileLang's mma_sp_layout.py, load_fragment_e
///     16-bit k16   load_fragment_e; as the first half of k32
///     tf32   k16   CuTe 64x16, reorder_meta, TileLang
///     tf32   k8    as the first half of k16 (no other source)
///     8-bit  k64   CuTe 16x8x64 and 64x64, reorder_meta, TileLang, load_fragment_e; ptxas, which
///                  makes FP8 of it HMMA.SP.16832 by shuffles into the order of 16-bit k32
///     8-bit  k32   the words of a row: pjt222/bare-metal (run on sm_86, rows g and g + 8 alike);
///                  which row is in which lane: as the first half of k64 (no other source)
///     4-bit  k128  CuTe 16x8x128; ptxas, which hands the register to 8-bit k64 as it is
///     4-bit  k64   ptxas, which hands the register to 8-bit k32 as it is
NUMEMU_HD constexpr MetadataPlace metadata_place(const Instruction& i, int lane, int word) {
  const int g = group_of(lane);
  const int t = thread_of(lane);
  if (t >= metadata_lanes(i)) return {-1, -1};
  return info(i.a).bits >= 16 ? MetadataPlace{g + 8 * (word / 4), 4 * t + word % 4}
                              : MetadataPlace{g + 8 * (t % 2), 8 * (t / 2) + word};
}

/// The register of a lane; metadata: [16][groups()] of this warp's rows (for wgmma.sp those of warp
/// w begin at row 16 w). A lane that is not read holds what one that is read holds, as in CuTe.
NUMEMU_HD inline std::uint32_t gather_metadata(const Instruction& i, const std::uint8_t* metadata,
                                               int lane) {
  const int holder = 4 * group_of(lane) + thread_of(lane) % metadata_lanes(i);
  std::uint32_t bits = 0;
  for (int word = 0; word < 8; ++word) {
    const MetadataPlace at = metadata_place(i, holder, word);
    bits |= static_cast<std::uint32_t>(metadata[at.row * i.groups() + at.group]) << (4 * word);
  }
  return bits;
}

}  // namespace numemu::oracle::recording
