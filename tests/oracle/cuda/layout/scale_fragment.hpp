// The scales of A and B that each lane of a warp passes to mma.sync with block scales.
#pragma once
#include "tests/oracle/cuda/layout/fragment.hpp"

namespace numemu::oracle::recording {

/// Sources: PTX ISA, "Block scaling for mma.sync": two neighbouring lanes of a quad give the scales
/// of A, one lane those of B, block s of K in byte s of a register. Which of the two lanes holds
/// rows 0 to 7 and which 8 to 15 stands in a figure there and rests on CuTe alone
/// (mma_traits_sm120.hpp, SFALayout: bit 0 of the lane is worth eight rows).
/// Selectors {byte-id, thread-id} choose among bytes and lanes. All that they could name hold the
/// same scales here, so that they decide nothing; the kernels pass {0, 0}.
NUMEMU_HD constexpr int scale_a_row(int lane) { return group_of(lane) + 8 * (lane % 2); }
NUMEMU_HD constexpr int scale_b_column(int lane) { return group_of(lane); }

/// The scales of one row of A or column of B in a register: 1, 2 or 4 bytes, repeated to four.
NUMEMU_HD inline std::uint32_t scale_word(const Instruction& i, const std::uint8_t* scales,
                                          int row) {
  std::uint32_t word = 0;
  for (int s = 0; s < 4; ++s)
    word |= static_cast<std::uint32_t>(scales[row * i.scales() + s % i.scales()]) << (8 * s);
  return word;
}
NUMEMU_HD inline std::uint32_t gather_scale_a(const Instruction& i, const std::uint8_t* scale_a,
                                              int lane) {
  return scale_word(i, scale_a, scale_a_row(lane));
}
NUMEMU_HD inline std::uint32_t gather_scale_b(const Instruction& i, const std::uint8_t* scale_b,
                                              int lane) {
  return scale_word(i, scale_b, scale_b_column(lane));
}

}  // namespace numemu::oracle::recording
