// What a unit's own steps tell about a result that was computed elsewhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/reference/dot.hpp"
#include "emu/unit/unit.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

// Two results of one output: how far apart they are, and which is nearer to the exact sum.

enum class Nearer : std::uint8_t { first, second, neither };

/// Compares the distances of two results from the exact sum of output (i, j), without rounding. An
/// infinite or NaN result is near only to a sum that is the same.
Nearer nearer(const ReferenceDot&, std::int64_t i, std::int64_t j, const Value& first,
              const Value& second);

/// Numbers of the format (nullptr: two's complement of `bits`) between two codes, the second
/// included: 0 for the same number, zeros of either sign, and two NaN; the most there is for NaN
/// and a number.
std::uint64_t ulps_between(const Format*, int bits, std::uint64_t first, std::uint64_t second);

/// Lines about `given` as output (i, j) of the product, which the unit computes another way: the
/// difference; whether the given one is the exact sum rounded once, and how; the step in which the
/// unit leaves the exact sum, its largest loss, and the loss that is the difference. `number`: of
/// the output, with which stochastic registers draw.
std::vector<std::string> explain_result(const UnitDescription&, const Gemm&, std::int64_t i,
                                        std::int64_t j, std::int64_t number, const Value& given);

}  // namespace numemu::unit
