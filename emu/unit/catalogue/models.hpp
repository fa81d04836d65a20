// The models of units.def: each fills a description with the numbers of one family of machines.
#pragma once
#include <optional>
#include <string_view>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// NVIDIA's fused step: K products an instruction, G a step, F bits kept; the float32 register
/// keeps so many fraction bits and rounds toward zero, a float16 register rounds to nearest even.
/// With F from 23 on the alignment has the floor of the Leeds models (leeds_floor), and a zero C no
/// exponent: an H100's answer excludes any other floor for bfloat16 (docs/hardware.md).
UnitDescription nvidia(int k, int group, int fraction_bits, int kept_bits = 23);
/// The floor of the Leeds models of August 2026, by F and the register: its smallest normal
/// exponent
/// - 5 - (F - 23); none where F = 23 with float32 results, and for FP8 (F = 13).
std::optional<int> leeds_floor(const UnitDescription&);
/// The floor of MMA-Sim: -126, which a zero C has, too.
void take_mmasim_floor(UnitDescription&);
/// FP8 `mma.sync` where the chip has no such unit: two FP16 steps from zero over k mod 4 in {0, 1}
/// and {2, 3}, then a rounded addition of C.
UnitDescription lowered_fp8();
/// Block-scaled K = 32: scale exponents join every product's. The floor is MMA-Sim's.
UnitDescription nvidia_mx(int block);
/// Block-scaled FP4, K = 64: exact sums of 16 products, scaled, are the addends; F = 35. The floor
/// is MMA-Sim's.
UnitDescription nvidia_fp4();
/// One multiply-add after another, k ascending from C, in the type of the result.
UnitDescription fma_chain();
/// CDNA1 (Leeds): the products of a group and C added exactly, one rounding.
UnitDescription rounded_groups(int group);
/// CDNA2: products rounded, pairwise sums rounded, subnormals flushed everywhere.
UnitDescription mi200(int group);
/// CDNA3: products aligned without C, then both meet in a second alignment; `parts` 2: FP8.
UnitDescription mi300(int group, int parts);
/// TDPBF16PS: two chains over even and odd k from +0, then one addition of C an instruction.
UnitDescription amx_bf16();
/// TDPFP16PS: the same on float16, whose subnormals are normal numbers of float32.
UnitDescription amx_fp16();
/// VDPBF16PS: a chain with the odd element of each pair first.
UnitDescription avx512_bf16();
/// VFMADD231PH: a chain of binary16 multiply-adds.
UnitDescription avx512_fp16();
/// Exact products, `group` at a time, modulo 2^32.
UnitDescription integers(int group);
/// integers(), saturated once per group.
UnitDescription saturating_integers(int group);
/// AVX2's sum of bytes: pairs of products saturated to 16 bits, then added modulo 2^32.
UnitDescription saturating_pairs();
/// BFDOT with FPCR.EBF = 0: products, their sum and the sum with C rounded to odd, in pairs.
UnitDescription arm_bfdot();
/// Arm's FP8 dot products: the exact sum of a group and C, rounded once.
UnitDescription arm_fp8(int group);
/// Dot products of RISC-V's Zvbdot: K products aligned to the largest exponent, 23 + log2(K) bits
/// kept and every cut rounded to odd, as are their sum and its sum with C; zero products drop out.
UnitDescription riscv_bulk(int k);

/// Definitions.
UnitDescription sequential();
UnitDescription exact();
UnitDescription exact_scaled(std::string_view scale_format, int block);
UnitDescription xnor();

/// Gives a model its types, in the short names of units ("e4m3", "f32", "f32.mx32"): operands, C, D
/// and the register.
void set_types(UnitDescription&, std::string_view a, std::string_view b, std::string_view d);
/// The format of a short name as unit names use it (e4m3 is float8_e4m3fn); nullptr for s32.
const Format* format_of_type(std::string_view type);

}  // namespace numemu::unit
