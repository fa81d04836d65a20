#include "policies/calibrate/static_scale.hpp"

#include <algorithm>
#include <cmath>

#include "policies/calibrate/observers.hpp"

namespace numemu::policies {

std::optional<std::shared_ptr<const SeenTensor>> SeenTensors::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(key);
  return found == seen_.end() ? std::nullopt : std::optional(found->second);
}

void SeenTensors::put(const std::string& key, std::shared_ptr<const SeenTensor> seen) {
  const std::lock_guard lock(mutex_);
  seen_[key] = std::move(seen);
}

StaticScale::StaticScale(const CalibrationPolicy& calibration, const RolePolicy& policy)
    : calibration_(calibration), quantizer_(policy) {
  using Needs = SeenTensor::Needs;
  own_->range = policy.zero_point;
  own_->needs = calibration.rule != CalibrationPolicy::Rule::absmax ? Needs::histogram
                : quantizer_.largest_only()                         ? Needs::magnitude
                                                                    : Needs::elements;
}

void StaticScale::see(const float* x, std::int64_t n) {
  SeenTensor& seen = *own_;
  if (seen.range) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(x[i])) continue;
      seen.low = std::min(seen.low, x[i]);
      seen.high = std::max(seen.high, x[i]);
    }
  }
  if (seen.needs == SeenTensor::Needs::histogram) {
    seen.histogram.add(x, n);
  } else if (seen.needs == SeenTensor::Needs::magnitude) {
    seen.magnitude = std::max(seen.magnitude, parallel_magnitude(x, n));
  } else {
    const std::int64_t left = kMostElements - static_cast<std::int64_t>(seen.elements.size());
    seen.elements.insert(seen.elements.end(), x, x + std::min(n, left));
  }
}

bool StaticScale::take(const std::shared_ptr<const SeenTensor>& other) {
  using Needs = SeenTensor::Needs;
  const bool enough = other != nullptr && (other->range || !own_->range) &&
                      (other->needs == own_->needs ||
                       (own_->needs == Needs::magnitude && other->needs == Needs::histogram));
  if (enough) seen_ = other;
  return enough;
}

std::shared_ptr<const SeenTensor> StaticScale::seen() const {
  return seen_->needs == SeenTensor::Needs::elements ? nullptr : seen_;
}

TensorScale StaticScale::scale() const {
  const SeenTensor& seen = *seen_;
  const RolePolicy& policy = quantizer_.policy();
  const bool clips = own_->needs == SeenTensor::Needs::histogram;
  const double threshold = clips ? histogram_threshold(calibration_, policy, seen.histogram)
                           : seen.needs == SeenTensor::Needs::histogram ? seen.histogram.largest()
                                                                        : seen.magnitude;
  if (policy.zero_point) {
    const float clip = clips ? static_cast<float>(threshold) : HUGE_VALF;
    return quantizer_.scale_of_range(std::max(seen.low, -clip), std::min(seen.high, clip));
  }
  if (own_->needs != SeenTensor::Needs::elements) return {quantizer_.scale_of_magnitude(threshold)};
  return {quantizer_.scale(seen.elements.data(), static_cast<std::int64_t>(seen.elements.size()))};
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
