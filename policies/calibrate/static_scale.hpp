// Static activation scales: one per tensor, from what the float32 graph shows on the calibration
// samples.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "policies/calibrate/observers.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// What static scales read of a tensor that was seen piece by piece: as much of it as one of them
/// needs.
struct SeenTensor {
  enum class Needs : std::uint8_t { magnitude, histogram, elements };
  Needs needs = Needs::magnitude;
  bool range = false;       ///< low and high are known
  double magnitude = 0;     ///< unless histogram or elements are there
  float low = 0, high = 0;  ///< of finite elements and 0
  MagnitudeHistogram histogram;
  std::vector<float> elements;
};

/// What calibration saw, by samples, layer and side, null where a layer has no operand on that side
/// that is an activation: points of a sweep on the same float32 network and data set share it, also
/// beside each other.
class SeenTensors {
 public:
  /// Nothing where it is not known.
  std::optional<std::shared_ptr<const SeenTensor>> find(const std::string& key) const;
  void put(const std::string& key, std::shared_ptr<const SeenTensor>);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const SeenTensor>> seen_;
};

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

  /// Takes what another one saw of the same tensor, unless it lacks what this one needs; then
  /// false.
  bool take(const std::shared_ptr<const SeenTensor>&);
  /// What this one saw, for others to take; null where that is the elements, too much to keep.
  std::shared_ptr<const SeenTensor> seen() const;

 private:
  CalibrationPolicy calibration_;
  RoleQuantizer quantizer_;
  std::shared_ptr<SeenTensor> own_ = std::make_shared<SeenTensor>();  ///< seen here
  std::shared_ptr<const SeenTensor> seen_ = own_;
};

/// The scale of an activation that the reference recorded (inputs or seconds): the role's scale
/// rule over the elements of the first `samples` samples, or, for calibration rules that clip, over
/// the magnitude at which they do.
TensorScale static_scale(const CalibrationPolicy&, const RolePolicy&, const FloatReference&,
                         const net::Tensor& recorded);

}  // namespace numemu::policies
