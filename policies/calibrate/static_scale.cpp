// Static activation scales: one per tensor, from what the float32 graph shows on the calibration
// samples.
#include "policies/calibrate/static_scale.hpp"

#include <algorithm>

#include "policies/calibrate/observers.hpp"

namespace numemu::policies {

bool has_static_scale(const CalibrationPolicy& calibration, const RolePolicy& policy) {
  return policy.granularity == Granularity::tensor && policy.block == nullptr &&
         calibration.rule != CalibrationPolicy::Rule::dynamic;
}

float static_scale(const CalibrationPolicy& calibration, const RolePolicy& policy,
                   const FloatReference& reference, const net::Tensor& recorded) {
  const RoleQuantizer quantizer(policy);
  const std::int64_t all = std::max<std::int64_t>(1, reference.samples());
  // Tensors whose first axis is not the samples' (constants) are seen whole.
  const std::int64_t n = recorded.dim(0) % all == 0
                             ? recorded.size() / all * std::min(all, calibration.samples)
                             : recorded.size();
  if (calibration.rule == CalibrationPolicy::Rule::absmax)
    return quantizer.scale(recorded.data.data(), n);
  const std::unique_ptr<Observer> observer = Observer::make(calibration, policy);
  observer->see(recorded.data.data(), n);
  return quantizer.scale_of_magnitude(observer->threshold());
}

}  // namespace numemu::policies
