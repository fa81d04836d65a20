// Exact products too wide for one float64 chain: chains of pieces, combined without rounding.
#pragma once
#include "emu/unit/exact/exact_plan.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// D = A x B + C exactly, rounded once, by a plan whose way is `split`. `specials`: whether A or B
/// holds NaN or infinity.
void multiply_split(const Gemm&, const ExactPlan&, bool specials);

}  // namespace numemu::unit
