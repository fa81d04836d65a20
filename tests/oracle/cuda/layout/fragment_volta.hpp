// The places of the elements of a tile in the lanes for mma.m8n8k4 of half precision, the
// quad-pair instruction of Volta.
#pragma once
#include "tests/oracle/cuda/layout/fragment.hpp"

namespace numemu::oracle::recording {

/// A warp computes four products of 8x8x4; product q belongs to lanes 4q..4q+3 (rows or columns
/// 0..3) and 16+4q..19+4q (4..7). Every product is given the same tile, so all four must agree and
/// any of them may write D. Source: PTX ISA, "Matrix fragments for mma.m8n8k4 with .f16", .row.col;
/// the same as CuTe SM70_8x4_Row, SM70_8x8_16b and SM70_8x8_32b (mma_traits_sm70.hpp).
struct QuadPairLayout {
  NUMEMU_HD static constexpr int a_registers(const Instruction&) { return 2; }
  NUMEMU_HD static constexpr int b_registers(const Instruction&) { return 2; }
  NUMEMU_HD static constexpr int c_registers(const Instruction&, Element e) {
    return e == Element::f16 ? 4 : 8;
  }

  /// Which of the four products a lane works for.
  NUMEMU_HD static constexpr int product(int lane) { return lane % 16 / 4; }
  NUMEMU_HD static constexpr int line(int lane) { return lane % 4 + (lane < 16 ? 0 : 4); }

  /// Slot s of register r of A: row and k.
  NUMEMU_HD static constexpr Place a_place(int lane, int r, int s) {
    return {line(lane), 2 * r + s};
  }
  /// Slot s of register r of B: k and column.
  NUMEMU_HD static constexpr Place b_place(int lane, int r, int s) {
    return {2 * r + s, line(lane)};
  }
  /// Slot s of register r of C or D.
  NUMEMU_HD static constexpr Place c_place(Element e, int lane, int r, int s) {
    if (e == Element::f16) return {line(lane), 2 * r + s};
    return {(lane & 1) + (r & 2) + (lane < 16 ? 0 : 4), (r & 4) + (lane & 2) + (r & 1)};
  }

  NUMEMU_HD static std::uint64_t gather_a(const Instruction& i, const std::uint8_t* a, int lane,
                                          int r) {
    std::uint64_t word = 0;
    for (int s = 0; s < 2; ++s) {
      const Place at = a_place(lane, r, s);
      word |= load_code(a + (at.row * i.k + at.column) * 2, 2) << (16 * s);
    }
    return word;
  }
  NUMEMU_HD static std::uint64_t gather_b(const Instruction& i, const std::uint8_t* b, int lane,
                                          int r) {
    std::uint64_t word = 0;
    for (int s = 0; s < 2; ++s) {
      const Place at = b_place(lane, r, s);
      word |= load_code(b + (at.column * i.k + at.row) * 2, 2) << (16 * s);
    }
    return word;
  }
  NUMEMU_HD static std::uint64_t gather_c(const Instruction& i, const std::uint8_t* c, int lane,
                                          int r) {
    const int bytes = info(i.c).bytes;
    std::uint64_t word = 0;
    for (int s = 0; s < 4 / bytes; ++s) {
      const Place at = c_place(i.c, lane, r, s);
      word |= load_code(c + (at.row * i.n + at.column) * bytes, bytes) << (16 * s);
    }
    return word;
  }
  NUMEMU_HD static void scatter_d(const Instruction& i, std::uint8_t* d, int lane, int r,
                                  std::uint64_t word) {
    if (product(lane) != 0) return;
    const int bytes = info(i.d).bytes;
    for (int s = 0; s < 4 / bytes; ++s) {
      const Place at = c_place(i.d, lane, r, s);
      store_code(d + (at.row * i.n + at.column) * bytes, bytes, word >> (16 * s));
    }
  }
};

}  // namespace numemu::oracle::recording
