// Roles of weights as recipes write them.
#pragma once
#include <string>

#include "policies/recipe/role_policy.hpp"

namespace numemu::policies::test {

/// intN under absmax scales.
inline RolePolicy integers(int bits, Granularity granularity = Granularity::channel) {
  RolePolicy policy;
  policy.format = &find_format("int" + std::to_string(bits));
  policy.scale = "absmax";
  policy.granularity = granularity;
  return policy;
}

/// A block format under its default rule.
inline RolePolicy blocks(const std::string& format, BlockAxis axis = BlockAxis::channel) {
  const BlockFormat& block = find_block_format(format);
  RolePolicy policy;
  policy.format = block.element;
  policy.block = &block;
  policy.scale = block.default_rule;
  policy.granularity = Granularity::block;
  policy.axis = axis;
  return policy;
}

}  // namespace numemu::policies::test
