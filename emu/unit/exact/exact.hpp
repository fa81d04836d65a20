// Exact sums rounded once, fast wherever a proof covers host arithmetic.
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kExactFields[] = {"core", "accumulator.format", "c", "d"};

/// Covers the exact core over the whole depth with a float32 register, without scales. False where
/// it does not apply.
bool multiply_exact(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
