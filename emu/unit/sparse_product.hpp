// Products with an N:M compressed A: each row is a dense product with the columns of B it kept.
#pragma once
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Gathers for every row of A the elements of B opposite its kept ones and runs the dense unit's
/// fast path on them. False where there is none, or where the register is stochastic (its random
/// bits count rows of the whole product); what it wrote by then does not matter.
bool multiply_sparse(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
