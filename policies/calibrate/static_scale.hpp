// Static activation scales: one per tensor, from what the float32 graph shows on the calibration
// samples.
#pragma once
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Whether the role has a static scale: one scale for the tensor, and a rule that is not `dynamic`.
bool has_static_scale(const CalibrationPolicy&, const RolePolicy&);

/// The scale of an activation that the reference recorded (inputs or seconds): the role's scale
/// rule over the elements of the first `samples` samples, or, for calibration rules that clip, over
/// the magnitude at which they do.
float static_scale(const CalibrationPolicy&, const RolePolicy&, const FloatReference&,
                   const net::Tensor& recorded);

}  // namespace numemu::policies
