// Which scales of activations wait for calibration samples.
#pragma once
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Whether a role has a static scale (static_scale.hpp) that samples give: not the one of scale
/// rule `none`, which is 1, nor one that ranges fix.
bool is_calibrated(const CalibrationPolicy&, const RolePolicy&);

}  // namespace numemu::policies
