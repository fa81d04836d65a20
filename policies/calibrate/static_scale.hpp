// Static activation scales: one per tensor, from what the float32 graph shows on the calibration
// samples.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "policies/calibrate/observers.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Whether the role has a static scale: one scale for the tensor, and a rule that is not `dynamic`.
bool has_static_scale(const CalibrationPolicy&, const RolePolicy&);

/// The scale of a tensor that is seen piece by piece: the role's scale rule over its elements, or,
/// for calibration rules that clip, over the magnitude at which they do. Scale rules that read all
/// elements see the first kMostElements. With a zero point: that of the range from the least to the
/// largest element, each clipped to that magnitude.
class StaticScale {
 public:
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 22;

  StaticScale(const CalibrationPolicy&, const RolePolicy&);
  void see(const float* x, std::int64_t n);
  TensorScale scale() const;

 private:
  RoleQuantizer quantizer_;
  std::unique_ptr<Observer> observer_;  ///< rules that clip
  double magnitude_ = 0;
  float low_ = 0, high_ = 0;  ///< of finite elements and 0
  std::vector<float> elements_;
};

/// The scale of an activation that the reference recorded (inputs or seconds): the role's scale
/// rule over the elements of the first `samples` samples, or, for calibration rules that clip, over
/// the magnitude at which they do.
TensorScale static_scale(const CalibrationPolicy&, const RolePolicy&, const FloatReference&,
                         const net::Tensor& recorded);

}  // namespace numemu::policies
