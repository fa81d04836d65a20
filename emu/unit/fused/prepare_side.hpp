// One operand of a fused product, decoded to float32 and measured.
#pragma once
#include <cstdint>

#include "emu/unit/fused/prepare.hpp"

namespace numemu::unit {

/// Whether the format has infinities and subnormal numbers as in IEEE 754, and these sizes.
bool is_ieee(const Format*, int exponent_bits, int mantissa_bits, int bias);
inline bool is_float32(const Format* f) { return is_ieee(f, 8, 23, 127); }
inline bool is_float16(const Format* f) { return is_ieee(f, 5, 10, 15); }

/// Whether operands of the format can be read as float32, with the rounding of inputs that the unit
/// does.
bool reads_as_float32(const UnitDescription&, const Format& operand);

/// Throws Error where the gather does not fit the operand's shape.
FusedSide prepare_side(const UnitDescription&, const Operand&, std::int64_t rows,
                       std::int64_t depth);
/// Adds the exponents of the scales, rows x blocks codes; a NaN scale makes its row special.
void read_scales(FusedSide&, const Format& format, const std::uint8_t* codes, std::int64_t rows,
                 std::int64_t blocks);

}  // namespace numemu::unit
