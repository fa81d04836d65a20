// The 32-bit instruction descriptor of tcgen05.mma: types, shape, sparsity, saturation.
#pragma once
#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording::tcgen05 {

/// The kinds of tcgen05.mma in the table.
enum class MmaKind : std::uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

/// K = 64 with block scales is FP4 packed two to a byte; blocks of 16 are mxf4nvf4's alone.
NUMEMU_HD constexpr MmaKind mma_kind(const Instruction& i) {
  if (i.kind == Kind::tc5bs)
    return i.k == 32 ? MmaKind::mxf8f6f4 : i.block == 32 ? MmaKind::mxf4 : MmaKind::mxf4nvf4;
  if (is_integer(i.a)) return MmaKind::i8;
  return i.a == Element::tf32   ? MmaKind::tf32
         : info(i.a).bytes == 2 ? MmaKind::f16
                                : MmaKind::f8f6f4;
}
NUMEMU_HD constexpr bool packs_fp4(MmaKind kind) {
  return kind == MmaKind::mxf4 || kind == MmaKind::mxf4nvf4;
}

/// Source: PTX ISA, "Instruction descriptor", columns atype and btype of its three tables.
NUMEMU_HD constexpr std::uint32_t operand_format(MmaKind kind, Element e) {
  switch (e) {
    case Element::f16:
    case Element::e4m3:
    case Element::u8:
      return 0;
    case Element::bf16:
    case Element::e5m2:
    case Element::s8:
      return 1;
    case Element::tf32:
      return 2;
    case Element::e2m3:
      return 3;
    case Element::e3m2:
      return 4;
    case Element::e2m1:
      return packs_fp4(kind) ? 1 : 5;
    default:
      return 7;  // no such operand
  }
}
NUMEMU_HD constexpr std::uint32_t result_format(Element e) {
  return e == Element::f16 ? 0 : e == Element::f32 ? 1 : 2;
}

/// Source: PTX ISA, "Instruction descriptor"; CuTe mma_sm100_desc.hpp has the same fields. Zero
/// stand: sparsity selector and scale ids (bits 0-1, 4-5 and 29-30), negation, K-major A and B,
/// K = 64 and not 96 of mxf4 (bit 31).
NUMEMU_HD constexpr std::uint32_t instruction_descriptor(const Instruction& i) {
  const MmaKind kind = mma_kind(i);
  std::uint32_t word = operand_format(kind, i.a) << 7 | operand_format(kind, i.b) << 10 |
                       static_cast<std::uint32_t>(i.n >> 3) << 17 |
                       static_cast<std::uint32_t>(i.m >> 4) << 24;
  if (i.block != 0) return word | (i.scale == Element::ue8m0 ? 1u << 23 : 0u);
  if (i.sparsity != Sparsity::dense) word |= 1u << 2;
  if (i.satfinite) word |= 1u << 3;
  return word | result_format(i.d) << 4;
}

}  // namespace numemu::oracle::recording::tcgen05
