// The ways to store a role that a search chooses from: element formats times scales.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::experiments {

/// What a space consists of.
struct SpacePlan {
  /// Element formats by name; none: signed ones of least_bits to most_bits bits: every eXmY without
  /// infinity and NaN, every integer, every other named format.
  std::vector<std::string> formats = {};
  int least_bits = 2, most_bits = 8;
  double most_stored = HUGE_VAL;  ///< bits of an element with the scale of a full block
  std::vector<std::int64_t> blocks = {8, 16, 32, 64, 128};  ///< sizes; none: no blocks
  std::vector<std::string> scales = {"float16", "float8_e4m3fn", "float8_e5m2"};  ///< of groups
  /// Scale rules; each is tried on everything. Weights without blocks are also tried under mse.
  std::vector<std::string> rules = {"absmax", "pow2(absmax,up)", "floor", "ceil",
                                    "even",   "nearest"};
  std::string named = "formats";  ///< what messages call the list of formats
};

/// A role as a recipe has it.
struct SearchOption {
  std::string name;  ///< "e2m3+finite, blocks of 32, e8m0, floor"
  Json role;
  policies::RolePolicy policy;
  /// Options with the same scaling differ in the element format alone.
  std::size_t scaling = 0;
};

/// The element formats of a plan; of several with the same values up to a power of two the first.
/// Throws Error naming a format that cannot be an element.
std::vector<const Format*> space_elements(const SpacePlan&);

/// Of an element in a full block, with its scale; without blocks those of the element.
double stored_bits_of(const policies::RolePolicy&);

/// Of a role ("weight", "activation"): granularities, power-of-two blocks, groups with every scale
/// format, of 8 bits or fewer also under a scale of the tensor, each under every rule. What a
/// recipe refuses is left out. Ordered by scaling.
std::vector<SearchOption> space_of(const SpacePlan&, const std::string& role);

}  // namespace numemu::experiments
