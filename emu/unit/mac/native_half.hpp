// Chains in IEEE half precision on CPUs whose fused multiply-add has that precision (AVX512-FP16).
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit::mac {

/// As multiply_mac(), for a unit that it applies to. False, and nothing is written, unless the
/// register is E5M10 under RNE and `ieee`, both operands are exact in it, there are columns enough
/// to fill vectors, and the CPU has the instructions.
bool multiply_native_half(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit::mac
