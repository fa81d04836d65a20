// Fast path of fused units whose products meet C in a second alignment (CDNA3's MFMA).
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kStagedFields[] = {"core",
                                                     "k",
                                                     "group",
                                                     "accumulator.format",
                                                     "c",
                                                     "d",
                                                     "c_entry",
                                                     "alignment.fraction_bits",
                                                     "alignment.zero_exponent",
                                                     "alignment.floor",
                                                     "alignment.parts",
                                                     "second.fraction_bits",
                                                     "second.c_fraction_bits",
                                                     "second.c_dropped",
                                                     "products_overflow",
                                                     "nan_code"};

/// Computes the product as ReferenceDot does. False, with nothing written, where it does not cover
/// the description or the formats: everything but float32 registers rounded to nearest even, dense
/// unscaled floating operands, addends cut toward zero, zeros of exponent -126 and a second
/// alignment. Throws Error as Unit::multiply does.
bool multiply_staged(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
