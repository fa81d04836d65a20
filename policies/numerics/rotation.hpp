// Hadamard rotations of an operand along one axis, block by block, with random signs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/random.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::policies {

inline constexpr double kLargestRotation = 65536;

/// Signs +-1 of positions [0, n).
std::vector<float> random_signs(const RandomSource&, std::int64_t n);

/// x, seen as [outer, signs.size(), inner], becomes x S H along its second axis in y, which may be
/// x: H is a Hadamard matrix of `block` positions (a power of two), S the signs. What is left of
/// the axis beyond the last whole block stays. The factors of a left and a right operand are powers
/// of two whose product is 1 / block: they round nothing but subnormals. Uses threads.
void rotate(const float* x, float* y, std::int64_t outer, std::int64_t inner,
            const std::vector<float>& signs, std::int64_t block, bool left);
/// rotate() in place, position after position: the reference.
void rotate_reference(float* x, std::int64_t outer, std::int64_t inner,
                      const std::vector<float>& signs, std::int64_t block, bool left);

/// Why a role cannot be rotated ("" where it can): a mask, whose elements are those of the tensor
/// as it is, or a format without negative numbers.
std::string not_rotatable(const char* role, const std::optional<RolePolicy>&,
                          const std::optional<MaskPolicy>&);

}  // namespace numemu::policies
