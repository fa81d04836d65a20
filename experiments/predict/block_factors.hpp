// What the codes of blocks would be multiplied by, by a role's scale rule, which never quantizes.
#pragma once
#include <vector>

#include "formats/blocks/block_layout.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::experiments {

/// The factor of every block of a tensor, in the order of the layout: its scale, times the
/// tensor's, times 2^(the format's element exponent). For symmetric codes.
std::vector<double> block_factors(const policies::RolePolicy&, const BlockLayout&, const float* x);

}  // namespace numemu::experiments
