// Plain chains of float32 or float64 multiply-adds, k ascending from C.
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kFloatChainFields[] = {"core", "accumulator.format", "c", "d",
                                                         "nan_code"};

/// Covers the chain core with a float32 or float64 register, every multiply-add rounded to nearest
/// even, subnormals kept and one NaN. False where it does not apply.
bool multiply_float_chain(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
