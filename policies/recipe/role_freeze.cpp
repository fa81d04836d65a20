// Roles frozen for inference: static scales from calibration.
#include <optional>

#include "formats/error.hpp"
#include "policies/calibrate/listen.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/fixed_scales.hpp"
#include "policies/recipe/role_numerics.hpp"

namespace numemu::policies {

void RoleNumerics::freeze(const net::Graph& graph, const Calibration& calibration,
                          const ReadInput& read) {
  // Of the left and the right operand of a layer, as far as they have static scales.
  struct Calibrated {
    std::optional<StaticScale> left, right;
    bool saw_left = false, saw_right = false;
  };
  std::map<std::string, Calibrated, std::less<>> scales;
  for (auto& [name, layer] : layers_) {
    layer->frozen = true;
    layer->weight_ready = false;
    layer->prepared_weight.reset();
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
  for (auto& [name, node] : nodes_) node->frozen_table.reset();
  frozen_ = true;
  if (scales.empty()) return;
  const auto see = [&](std::int64_t first, std::string_view name, const net::Tensor& left,
                       const net::Tensor* right) {
    const auto found = scales.find(name);
    if (found == scales.end()) return;
    Calibrated& scale = found->second;
    scale.saw_left = true;
    if (scale.left && read) {
      net::Tensor x = left;
      read(name, first, x);
      scale.left->see(x.data.data(), x.size());
    } else if (scale.left) {
      scale.left->see(left.data.data(), left.size());
    }
    if (right == nullptr || !scale.right) return;
    scale.right->see(right->data.data(), right->size());
    scale.saw_right = true;
  };
  // Layer by layer, as the pass computes them: no more than a pass is in memory.
  calibration.for_each([&](std::int64_t first, const std::vector<net::Tensor>& inputs) {
    listen(graph, inputs,
           {.operands = [&](std::string_view name, const net::Tensor& left,
                            const net::Tensor* right) { see(first, name, left, right); },
            .output = nullptr});
  });
  for (const auto& [name, scale] : scales) {
    if (!scale.saw_left && calibration.samples > 0)
      throw Error("calibration: the network computes no product of layer " + name);
  }
  for (auto& [name, scale] : scales) {
    RecipeLayer& layer = *layers_.find(name)->second;
    if (scale.left) layer.activation_scale = scale.left->scale();
    if (scale.saw_right) layer.second_scale = scale.right->scale();
  }
}

StaticScales RoleNumerics::static_scales() const {
  StaticScales scales;
  for (const auto& [name, layer] : layers_) {
    if (layer->activation_scale) scales[name] = *layer->activation_scale;
  }
  return scales;
}

}  // namespace numemu::policies
