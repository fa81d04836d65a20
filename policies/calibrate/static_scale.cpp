#include "policies/calibrate/static_scale.hpp"

#include <algorithm>
#include <cmath>

#include "policies/calibrate/observers.hpp"

namespace numemu::policies {

bool has_static_scale(const CalibrationPolicy& calibration, const RolePolicy& policy) {
  return policy.granularity == Granularity::tensor && policy.block == nullptr &&
         calibration.rule != CalibrationPolicy::Rule::dynamic;
}

StaticScale::StaticScale(const CalibrationPolicy& calibration, const RolePolicy& policy)
    : quantizer_(policy) {
  if (calibration.rule != CalibrationPolicy::Rule::absmax)
    observer_ = Observer::make(calibration, policy);
}

void StaticScale::see(const float* x, std::int64_t n) {
  if (quantizer_.policy().zero_point) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(x[i])) continue;
      low_ = std::min(low_, x[i]);
      high_ = std::max(high_, x[i]);
    }
  }
  if (observer_) {
    observer_->see(x, n);
  } else if (quantizer_.largest_only()) {
    magnitude_ = std::max(magnitude_, parallel_magnitude(x, n));
  } else {
    const std::int64_t left = kMostElements - static_cast<std::int64_t>(elements_.size());
    elements_.insert(elements_.end(), x, x + std::min(n, left));
  }
}

TensorScale StaticScale::scale() const {
  if (quantizer_.policy().zero_point) {
    const float clip = observer_ ? static_cast<float>(observer_->threshold()) : HUGE_VALF;
    return quantizer_.scale_of_range(std::max(low_, -clip), std::min(high_, clip));
  }
  if (observer_) return {quantizer_.scale_of_magnitude(observer_->threshold())};
  if (quantizer_.largest_only()) return {quantizer_.scale_of_magnitude(magnitude_)};
  return {quantizer_.scale(elements_.data(), static_cast<std::int64_t>(elements_.size()))};
}

TensorScale static_scale(const CalibrationPolicy& calibration, const RolePolicy& policy,
                         const FloatReference& reference, const net::Tensor& recorded) {
  const std::int64_t all = std::max<std::int64_t>(1, reference.samples());
  // Tensors whose first axis is not the samples' (constants) are seen whole.
  const std::int64_t n = recorded.dim(0) % all == 0
                             ? recorded.size() / all * std::min(all, calibration.samples)
                             : recorded.size();
  StaticScale scale(calibration, policy);
  scale.see(recorded.data.data(), n);
  return scale.scale();
}

}  // namespace numemu::policies
