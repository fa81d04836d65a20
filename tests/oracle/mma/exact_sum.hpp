// The exact sum of products and one rounding of it, in integers without bounds.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/rounding.hpp"
#include "formats/value.hpp"

namespace numemu::oracle::mma {

/// The float32 code of c plus the products, rounded once to nearest even or toward zero; beyond the
/// largest number infinity either way, NaN 0x7fc00000, an exact zero +0 (-0 only if every addend
/// is).
std::uint32_t exact_sum(const std::vector<std::pair<Value, Value>>& factors, const Value& c,
                        RoundingMode);

}  // namespace numemu::oracle::mma
