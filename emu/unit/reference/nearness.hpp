// Two results of one output: how far apart they are, and which is nearer to the exact sum.
#pragma once
#include <cstdint>

#include "emu/unit/reference/dot.hpp"

namespace numemu::unit {

enum class Nearer : std::uint8_t { first, second, neither };

/// Compares the distances of two results from the exact sum of output (i, j), without rounding. An
/// infinite or NaN result is near only to a sum that is the same.
Nearer nearer(const ReferenceDot&, std::int64_t i, std::int64_t j, const Value& first,
              const Value& second);

/// Numbers of the format (nullptr: two's complement of `bits`) between two codes, the second
/// included: 0 for the same number, zeros of either sign, and two NaN; the most there is for NaN
/// and a number.
std::uint64_t ulps_between(const Format*, int bits, std::uint64_t first, std::uint64_t second);

}  // namespace numemu::unit
