// Products of lines of signs on the unit neutral.xnor.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::experiments::binarized {

/// [a / depth, b / depth]: dot products of lines of `depth` codes of sign1 (0 is +1, 1 is -1).
std::vector<std::int32_t> sign_products(const std::vector<std::uint8_t>& a,
                                        const std::vector<std::uint8_t>& b, std::int64_t depth);

}  // namespace numemu::experiments::binarized
