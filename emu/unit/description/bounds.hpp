// The most bits a described unit may keep so that the reference's integers hold its sums.
#pragma once
#include <cstdint>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// Bits of the significand of an operand as it is multiplied: of the input rounding where there is
/// one.
int significand_bits(const UnitDescription&, const Format& operand);
/// The product of two operands fits the 64 bits of a Value.
bool products_fit(const UnitDescription&);
/// fused, scaling groups: the exact sum of 16 products times both significands of its scales fits
/// 64 bits.
bool group_sums_fit(const UnitDescription&);
/// fused: the largest alignment.fraction_bits, and second.fraction_bits, whose sums are exact.
int most_fraction_bits(const UnitDescription&);
int most_second_fraction_bits(const UnitDescription&);
/// The largest second.c_fraction_bits: C itself must fit 64 bits.
inline constexpr int kMostCFractionBits = 63;

}  // namespace numemu::unit
