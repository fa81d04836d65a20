// What a unit's results mean: elements of D as numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The numbers of `count` elements of D in the containers that multiply() writes: a floating
/// format, or a two's complement register in 1, 2 or 4 bytes with the bits right of its point. The
/// unit has a description where its results are a register's.
std::vector<double> result_values(const Unit&, const void* d, std::int64_t count);

}  // namespace numemu::unit
