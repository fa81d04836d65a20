// The places of the elements of a tile in the lanes of a warp: the fragments of mma.sync, mma.sp
// and (per warp) wgmma.
#pragma once
#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

/// Source: PTX ISA, "Matrix fragments for mma". Lane l is thread t = l mod 4 of group g = l / 4; a
/// 32-bit register holds `packed` codes of consecutive k (f64: a 64-bit register holds one).
NUMEMU_HD constexpr int group_of(int lane) { return lane / 4; }
NUMEMU_HD constexpr int thread_of(int lane) { return lane % 4; }

/// Bits a code takes in a register: fp6 and fp4 outside the 4-bit kinds fill bytes.
NUMEMU_HD constexpr int slot_bits(const Instruction& i, Element e) {
  if (e == Element::f64) return 64;
  const bool narrow = info(e).bits == 4;
  const bool bytes = narrow && info(e).specials == Specials::finite && i.k < 64;
  return bytes || info(e).bits == 6 ? 8 : info(e).bits;
}
NUMEMU_HD constexpr int register_bits(Element e) { return e == Element::f64 ? 64 : 32; }
NUMEMU_HD constexpr int packed(const Instruction& i, Element e) {
  return register_bits(e) / slot_bits(i, e);
}

struct Place {
  int row, column;
};

/// Registers of A and B in one lane (a warp of a warpgroup: its 16 rows).
NUMEMU_HD constexpr int a_rows(const Instruction& i) { return i.m == 8 ? 8 : 16; }
NUMEMU_HD constexpr int a_registers(const Instruction& i) {
  return a_rows(i) * i.kept() / (32 * packed(i, i.a));
}
NUMEMU_HD constexpr int b_registers(const Instruction& i) {
  return i.n * i.k / (32 * packed(i, i.b));
}
/// Registers of C or D: float16 packs two columns.
NUMEMU_HD constexpr int c_registers(const Instruction& i, Element e) {
  return a_rows(i) * i.n / (32 * (e == Element::f16 ? 2 : 1));
}

/// Slot s of register r of A: its row and its place among the kept of that row.
NUMEMU_HD constexpr Place a_place(const Instruction& i, int lane, int r, int s) {
  const int per = packed(i, i.a);
  const int rows = a_rows(i) / 8;
  return {group_of(lane) + 8 * (r % rows), (r / rows) * 4 * per + thread_of(lane) * per + s};
}
/// Slot s of register r of B: its k (row) and its column.
NUMEMU_HD constexpr Place b_place(const Instruction& i, int lane, int r, int s) {
  const int per = packed(i, i.b);
  return {r * 4 * per + thread_of(lane) * per + s, group_of(lane)};
}
/// Slot s of register r of C or D.
NUMEMU_HD constexpr Place c_place(Element e, int lane, int r, int s) {
  return e == Element::f16 ? Place{group_of(lane) + 8 * r, 2 * thread_of(lane) + s}
                           : Place{group_of(lane) + 8 * (r / 2), 2 * thread_of(lane) + r % 2};
}

/// Where a code sits in its slot: FP4 in a byte takes bits 2 to 5 (PTX ISA, kind::f8f6f4).
NUMEMU_HD constexpr int slot_shift(const Instruction& i, Element e) {
  return slot_bits(i, e) == 8 && info(e).bits == 4 ? 2 : 0;
}

NUMEMU_HD inline std::uint64_t gather_a(const Instruction& i, const std::uint8_t* a, int lane,
                                        int r) {
  const int bytes = info(i.a).bytes;
  std::uint64_t word = 0;
  for (int s = 0; s < packed(i, i.a); ++s) {
    const Place at = a_place(i, lane, r, s);
    word |= load_code(a + (at.row * i.kept() + at.column) * bytes, bytes)
            << (s * slot_bits(i, i.a) + slot_shift(i, i.a));
  }
  return word;
}
NUMEMU_HD inline std::uint64_t gather_b(const Instruction& i, const std::uint8_t* b, int lane,
                                        int r) {
  const int bytes = info(i.b).bytes;
  std::uint64_t word = 0;
  for (int s = 0; s < packed(i, i.b); ++s) {
    const Place at = b_place(i, lane, r, s);
    word |= load_code(b + (at.column * i.k + at.row) * bytes, bytes)
            << (s * slot_bits(i, i.b) + slot_shift(i, i.b));
  }
  return word;
}
NUMEMU_HD inline std::uint64_t gather_c(const Instruction& i, const std::uint8_t* c, int lane,
                                        int r) {
  const int bytes = info(i.c).bytes;
  std::uint64_t word = 0;
  for (int s = 0; s < (i.c == Element::f16 ? 2 : 1); ++s) {
    const Place at = c_place(i.c, lane, r, s);
    word |= load_code(c + (at.row * i.n + at.column) * bytes, bytes) << (16 * s);
  }
  return word;
}
NUMEMU_HD inline void scatter_d(const Instruction& i, std::uint8_t* d, int lane, int r,
                                std::uint64_t word) {
  const int bytes = info(i.d).bytes;
  for (int s = 0; s < (i.d == Element::f16 ? 2 : 1); ++s) {
    const Place at = c_place(i.d, lane, r, s);
    store_code(d + (at.row * i.n + at.column) * bytes, bytes, word >> (16 * s));
  }
}

}  // namespace numemu::oracle::recording
