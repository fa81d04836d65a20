// What a unit's own steps tell about a result that was computed elsewhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

/// Lines about `given` as output (i, j) of the product, which the unit computes another way: the
/// difference; whether the given one is the exact sum rounded once, and how; the step in which the
/// unit leaves the exact sum, its largest loss, and the loss that is the difference. `number`: of
/// the output, with which stochastic registers draw.
std::vector<std::string> explain_result(const UnitDescription&, const Gemm&, std::int64_t i,
                                        std::int64_t j, std::int64_t number, const Value& given);

}  // namespace numemu::unit
