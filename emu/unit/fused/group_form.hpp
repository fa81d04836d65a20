// Block-scaled FP4 fast: exact group sums in float32, scaled and cut in float64 lanes.
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kFusedGroupFields[] = {"core",
                                                         "k",
                                                         "group",
                                                         "accumulator.format",
                                                         "accumulator.rounding",
                                                         "accumulator.overflow_to_infinity",
                                                         "c",
                                                         "d",
                                                         "alignment.fraction_bits",
                                                         "nan_code",
                                                         "scaling.point",
                                                         "scaling.format",
                                                         "scaling.block"};

/// Covers fused units whose addends are scaled sums of 16 products (Scaling::Point::groups) of FP4
/// operands, with a float32 register rounded toward zero. False, with nothing written, where it
/// does not apply: where a sum could leave float32, or the CPU has no fused multiply-add.
bool multiply_fused_groups(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
