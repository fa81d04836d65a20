// The ways to store optimizer state and master weights that are compared, as recipes.
#pragma once
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::optimizer_state {

struct Method {
  enum class Expected : std::uint8_t { nothing, harmless, harmful };
  std::string name;
  Json recipe;                        ///< roles.state and update alone
  Expected top1 = Expected::nothing;  ///< beside float32
  std::string second = {};            ///< block format of the second moment; "": no block format
  bool stochastic = false;            ///< its rounding, or that of the masters
  bool masters = false;               ///< bfloat16
};

/// float32 first. Blocks have `block` elements.
std::vector<Method> methods(std::int64_t block);

}  // namespace numemu::experiments::optimizer_state
