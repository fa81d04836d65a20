// Roles frozen for inference: static scales from calibration.
#include <set>

#include "formats/error.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/role_numerics.hpp"

namespace numemu::policies {

void RoleNumerics::freeze(const net::Graph& graph, const Calibration& calibration,
                          const ReadInput& read) {
  std::map<std::string, std::pair<StaticScale, StaticScale>, std::less<>> scales;
  for (auto& [name, layer] : layers_) {
    layer->frozen = true;
    layer->weight_ready = false;
    layer->prepared_weight.reset();
    layer->activation_scale.reset();
    layer->second_scale.reset();
    if (!layer->activation) continue;
    const RolePolicy& policy = layer->activation->policy();
    if (!has_static_scale(recipe_.calibration(), policy)) continue;
    const auto fresh = [&] { return StaticScale(recipe_.calibration(), policy); };
    scales.emplace(name, std::pair(fresh(), fresh()));
  }
  frozen_ = true;
  if (scales.empty()) return;
  std::set<std::string, std::less<>> two_activations;
  calibration.for_each([&](std::int64_t first, std::vector<net::Tensor> inputs) {
    FloatReference seen = float_reference(graph, std::move(inputs));
    for (auto& [name, pair] : scales) {
      const auto input = seen.inputs.find(name);
      if (input == seen.inputs.end())
        throw Error("calibration: the network computes no product of layer " + name);
      read(name, first, input->second);
      pair.first.see(input->second.data.data(), input->second.size());
      const auto second = seen.seconds.find(name);
      if (second == seen.seconds.end()) continue;
      pair.second.see(second->second.data.data(), second->second.size());
      two_activations.insert(name);
    }
  });
  for (auto& [name, pair] : scales) {
    RecipeLayer& layer = *layers_.find(name)->second;
    layer.activation_scale = pair.first.scale();
    if (two_activations.contains(name)) layer.second_scale = pair.second.scale();
  }
}

std::map<std::string, float, std::less<>> RoleNumerics::static_scales() const {
  std::map<std::string, float, std::less<>> scales;
  for (const auto& [name, layer] : layers_) {
    if (layer->activation_scale) scales[name] = *layer->activation_scale;
  }
  return scales;
}

}  // namespace numemu::policies
