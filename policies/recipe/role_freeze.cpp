// Roles frozen for inference: static scales from calibration.
#include <fmt/format.h>

#include <optional>

#include "formats/error.hpp"
#include "policies/calibrate/listen.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/fixed_scales.hpp"
#include "policies/recipe/role_numerics.hpp"

namespace numemu::policies {

void RoleNumerics::freeze(const net::Graph& graph, const Calibration& calibration,
                          const ReadInput& read, SeenTensors* shared) {
  // Of the left and the right operand of a layer, as far as they have static scales.
  struct Calibrated {
    std::optional<StaticScale> left, right;
    bool saw_left = false, saw_right = false;
    bool waits_left = false, waits_right = false;  ///< for the pass
  };
  std::map<std::string, Calibrated, std::less<>> scales;
  forget_weights();
  for (auto& [name, layer] : layers_) {
    layer->frozen = true;
    layer->activation_scale.reset();
    layer->second_scale.reset();
    const auto fresh = [&](const std::optional<RoleQuantizer>& quantizer) {
      std::optional<StaticScale> scale;
      if (quantizer && !has_fixed_scales(quantizer->policy().scale) &&
          has_static_scale(recipe_.calibration(), quantizer->policy()))
        scale.emplace(recipe_.calibration(), quantizer->policy());
      return scale;
    };
    if (layer->activation) layer->activation_scale = fixed_scale(layer->activation->policy().scale);
    Calibrated calibrated{.left = fresh(layer->activation), .right = fresh(layer->second)};
    if (calibrated.left || calibrated.right) scales.emplace(name, std::move(calibrated));
  }
  frozen_ = true;
  if (scales.empty()) return;
  const auto key = [&](const std::string& layer, const char* side) {
    return fmt::format("{} {} {}", calibration.samples, layer, side);
  };
  const auto known = [&](std::optional<StaticScale>& scale,
                         const std::optional<RoleQuantizer>& quantizer, const std::string& layer,
                         const char* side) {
    // A scale of 1 needs no samples.
    if (scale && !is_calibrated(recipe_.calibration(), quantizer->policy())) return true;
    if (!scale || shared == nullptr || read) return false;
    const auto found = shared->find(key(layer, side));
    if (found == shared->end()) return false;
    if (found->second == nullptr) scale.reset();  // the layer has no such operand
    return scale && scale->take(found->second);
  };
  bool waits = false;
  for (auto& [name, scale] : scales) {
    const RecipeLayer& layer = *layers_.find(name)->second;
    scale.saw_left = known(scale.left, layer.activation, name, "left");
    scale.saw_right = known(scale.right, layer.second, name, "right");
    scale.waits_left = scale.left && !scale.saw_left;
    scale.waits_right = scale.right && !scale.saw_right;
    waits = waits || scale.waits_left || scale.waits_right;
  }
  const auto see = [&](std::int64_t first, std::string_view name, const net::Tensor& left,
                       const net::Tensor* right) {
    const auto found = scales.find(name);
    if (found == scales.end()) return;
    Calibrated& scale = found->second;
    scale.saw_left = true;
    if (scale.waits_left && read) {
      net::Tensor x = left;
      read(name, first, x);
      scale.left->see(x.data.data(), x.size());
    } else if (scale.waits_left) {
      scale.left->see(left.data.data(), left.size());
    }
    if (right == nullptr || !scale.waits_right) return;
    scale.right->see(right->data.data(), right->size());
    scale.saw_right = true;
  };
  // Layer by layer, as the pass computes them: no more than a pass is in memory.
  if (waits)
    calibration.for_each([&](std::int64_t first, const std::vector<net::Tensor>& inputs) {
      listen(graph, inputs,
             {.operands = [&](std::string_view name, const net::Tensor& left,
                              const net::Tensor* right) { see(first, name, left, right); },
              .output = nullptr});
    });
  // A layer whose product the network never computes (the recurrent one of a single step) gets the
  // scale of zeros.
  for (auto& [name, scale] : scales) {
    RecipeLayer& layer = *layers_.find(name)->second;
    if (scale.left) layer.activation_scale = scale.left->scale();
    if (scale.saw_right) layer.second_scale = scale.right->scale();
    if (shared == nullptr || read) continue;
    if (scale.waits_left && scale.left->seen()) (*shared)[key(name, "left")] = scale.left->seen();
    if (scale.waits_right && (!scale.saw_right || scale.right->seen()))
      (*shared)[key(name, "right")] = scale.saw_right ? scale.right->seen() : nullptr;
  }
}

void RoleNumerics::forget_weights() {
  for (auto& [name, layer] : layers_) {
    layer->weight_ready = false;
    layer->sliced_weight.reset();
    layer->reads_weight = false;
    layer->prepared_weight.reset();
  }
  for (auto& [name, node] : nodes_) node->frozen_table.reset();
}

StaticScales RoleNumerics::static_scales() const {
  StaticScales scales;
  for (const auto& [name, layer] : layers_) {
    if (layer->activation_scale) scales[name] = *layer->activation_scale;
  }
  return scales;
}

StaticScales RoleNumerics::second_scales() const {
  StaticScales scales;
  for (const auto& [name, layer] : layers_) {
    if (layer->second_scale) scales[name] = *layer->second_scale;
  }
  return scales;
}

}  // namespace numemu::policies
