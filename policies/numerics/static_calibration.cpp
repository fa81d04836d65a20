#include "policies/numerics/static_calibration.hpp"

#include <fmt/format.h>

#include <utility>

#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

constexpr const char *kLeft = "left", *kRight = "right";

}  // namespace

StaticCalibration::StaticCalibration(const CalibrationPolicy& calibration, std::int64_t samples,
                                     const RoleNumerics::ReadInput& read, SeenTensors* shared)
    : calibration_(calibration), samples_(samples), read_(read), shared_(read ? nullptr : shared) {}

std::optional<StaticScale> StaticCalibration::fresh(
    const std::optional<RoleQuantizer>& quantizer) const {
  if (!quantizer || quantizer->policy().fixed ||
      !has_static_scale(calibration_, quantizer->policy()))
    return std::nullopt;
  return StaticScale(calibration_, quantizer->policy());
}

void StaticCalibration::add(const std::string& name, LayerState& layer) {
  Layer own{.state = &layer,
            .left = {.scale = fresh(layer[RolePart::activation])},
            .right = {.scale = fresh(layer.second)}};
  if (own.left.scale || own.right.scale) layers_.emplace(name, std::move(own));
}

std::string StaticCalibration::key(const std::string& layer, const char* side) const {
  return fmt::format("{} {} {}", samples_, layer, side);
}

bool StaticCalibration::is_known(std::optional<StaticScale>& scale,
                                 const std::optional<RoleQuantizer>& quantizer,
                                 const std::string& layer, const char* side) const {
  // A scale of 1 needs no samples.
  if (scale && !is_calibrated(calibration_, quantizer->policy())) return true;
  if (!scale || shared_ == nullptr) return false;
  const auto found = shared_->find(key(layer, side));
  if (!found) return false;
  if (*found == nullptr) scale.reset();  // the layer has no such operand
  return scale && scale->take(*found);
}

void StaticCalibration::take_known(Operand& operand, const std::optional<RoleQuantizer>& quantizer,
                                   const std::string& layer, const char* side) const {
  operand.saw = is_known(operand.scale, quantizer, layer, side);
  operand.waits = operand.scale && !operand.saw;
}

bool StaticCalibration::take_known() {
  bool waits = false;
  for (auto& [name, layer] : layers_) {
    take_known(layer.left, (*layer.state)[RolePart::activation], name, kLeft);
    take_known(layer.right, layer.state->second, name, kRight);
    waits = waits || layer.left.waits || layer.right.waits;
  }
  return waits;
}

void StaticCalibration::see(std::int64_t first_sample, std::string_view name,
                            const net::Tensor& left, const net::Tensor* right) {
  const auto found = layers_.find(name);
  if (found == layers_.end()) return;
  Layer& layer = found->second;
  layer.left.saw = true;
  if (layer.left.waits && read_) {
    net::Tensor x = left;
    read_(name, first_sample, x);
    layer.left.scale->see(x.data.data(), x.size());
  } else if (layer.left.waits) {
    layer.left.scale->see(left.data.data(), left.size());
  }
  if (right == nullptr || !layer.right.waits) return;
  layer.right.scale->see(right->data.data(), right->size());
  layer.right.saw = true;
}

void StaticCalibration::settle() {
  for (auto& [name, layer] : layers_) {
    if (layer.left.scale) layer.state->activation_scale = layer.left.scale->scale();
    if (layer.right.scale && layer.right.saw)
      layer.state->second_scale = layer.right.scale->scale();
    if (shared_ != nullptr) share(name, layer);
  }
}

void StaticCalibration::share(const std::string& name, const Layer& layer) const {
  if (layer.left.waits && layer.left.scale->seen())
    shared_->put(key(name, kLeft), layer.left.scale->seen());
  if (layer.right.waits && (!layer.right.saw || layer.right.scale->seen()))
    shared_->put(key(name, kRight), layer.right.saw ? layer.right.scale->seen() : nullptr);
}

}  // namespace numemu::policies
