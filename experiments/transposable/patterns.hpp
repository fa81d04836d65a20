// The patterns of density one half that are compared, with their theory.
#pragma once
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::experiments {

struct HalfPattern {
  std::string name;  ///< "2:4", "2:4-T" (transposable), "unstructured"
  std::string mask;  ///< the rule, for recipes; what fills no group or tile is padded
  bool repairs;      ///< the rule takes repair=
  /// Expected share of the sum of magnitudes of 8 x 8 normal elements that is pruned: a closed
  /// form, or the figure of an earlier independent run where there is none.
  double loss = NAN;
  double loss_error = 0;  ///< about the standard error of such a figure; 0: a closed form
};

/// From the least loss on.
const std::vector<HalfPattern>& half_patterns();
/// Throws Error with the nearest known name.
const HalfPattern& half_pattern(std::string_view name);

}  // namespace numemu::experiments
