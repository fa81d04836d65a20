// The mark of policies that read no weight in inference.
#pragma once

namespace numemu::policies {

/// Below such a policy weights may be released in inference once the roles hold their codes
/// (policies/numerics/recipe_numerics.hpp). A base class beside Policy.
class LeavesWeights {
 public:
  virtual ~LeavesWeights() = default;
};

}  // namespace numemu::policies
