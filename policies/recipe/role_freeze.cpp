// A recipe frozen for inference: static scales from calibration, kept weights solved once.
#include <algorithm>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/adaprune.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/masked_operands.hpp"
#include "policies/recipe/role_numerics.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kCalibratedAtOnce = 32;  // samples whose activations are held together

/// The input of a layer as its products read it: under the mask of the activation.
net::Tensor masked_activation(const RecipeLayer& layer, std::string_view name, const net::Tensor& x,
                              std::int64_t first_sample, std::uint64_t seed) {
  const std::optional<MaskPolicy>& mask = layer.recipe.activation_mask;
  if (!mask || x.shape.empty() || x.size() == 0) return x;
  const std::int64_t samples = x.dim(0), each = x.size() / samples;
  net::Tensor out(x.shape);
  const RandomSource random = activation_mask_random(seed, name, *mask);
  const bool free = mask->rule->span == MaskSpan::tensor;
  for (std::int64_t s = 0; s < samples; ++s) {
    const float* const from = x.data.data() + s * each;
    const MaskLayout layout =
        free ? MaskLayout{.width = each}
             : MaskLayout{.rows = each / x.shape.back(), .width = x.shape.back()};
    const std::uint64_t first =
        static_cast<std::uint64_t>(first_sample + s) * decision_count(*mask, layout);
    const double threshold =
        mask->rule->threshold == nullptr ? 0 : mask->rule->threshold(*mask, from, each);
    mask_tensor(*mask, random, layout, first, threshold, from, out.data.data() + s * each, nullptr);
  }
  return out;
}

}  // namespace

void RoleNumerics::solve_kept_weights(const net::Graph& graph, std::int64_t samples,
                                      const CalibrationBatch& batch) {
  std::set<std::string, std::less<>> repaired;
  for (auto& [name, layer] : layers_) {
    if (!layer->weight_mask) continue;
    layer->weight_mask->forget();
    if (layer->weight_mask->policy().repair == Repair::adaprune) repaired.insert(name);
  }
  if (repaired.empty()) return;
  AdaPrune adaprune(repaired);
  for (std::int64_t first = 0; first < samples; first += kCalibratedAtOnce)
    net::forward(graph, batch(first, std::min(kCalibratedAtOnce, samples - first)), adaprune);
  for (const std::string& name : repaired) {
    WeightMask& mask = *layers_.find(name)->second->weight_mask;
    const net::Tensor& weight = net::weight_of(graph, name);
    const std::int64_t matrices = adaprune.matrices(name);
    const std::vector<std::uint8_t> keep = mask.keep_of(weight, matrices);
    mask.fix(adaprune.solve(name, *mask.passing(weight, matrices), keep));
  }
}

void RoleNumerics::freeze(const net::Graph& graph, std::int64_t available,
                          const CalibrationBatch& batch) {
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
  const std::int64_t samples = std::min(available, recipe_.calibration().samples);
  solve_kept_weights(graph, samples, batch);
  if (scales.empty()) return;
  std::set<std::string, std::less<>> two_activations;
  for (std::int64_t first = 0; first < samples; first += kCalibratedAtOnce) {
    const FloatReference seen =
        float_reference(graph, batch(first, std::min(kCalibratedAtOnce, samples - first)));
    for (auto& [name, pair] : scales) {
      const auto input = seen.inputs.find(name);
      if (input == seen.inputs.end())
        throw Error("calibration: the network computes no product of layer " + name);
      const net::Tensor read = masked_activation(*layers_.find(name)->second, name, input->second,
                                                 first, recipe_.seed());
      pair.first.see(read.data.data(), read.size());
      const auto second = seen.seconds.find(name);
      if (second == seen.seconds.end()) continue;
      pair.second.see(second->second.data.data(), second->second.size());
      two_activations.insert(name);
    }
  }
  for (auto& [name, pair] : scales) {
    RecipeLayer& layer = *layers_.find(name)->second;
    layer.activation_scale = pair.first.scale();
    if (two_activations.contains(name)) layer.second_scale = pair.second.scale();
  }
}

void RoleNumerics::freeze(const net::Graph& graph, const FloatReference& reference) {
  freeze(graph, reference.samples(), [&](std::int64_t first, std::int64_t count) {
    std::vector<net::Tensor> batch;
    for (const net::Tensor& x : reference.batch) batch.push_back(samples_of(x, first, count));
    return batch;
  });
}

std::map<std::string, float, std::less<>> RoleNumerics::static_scales() const {
  std::map<std::string, float, std::less<>> scales;
  for (const auto& [name, layer] : layers_) {
    if (layer->activation_scale) scales[name] = *layer->activation_scale;
  }
  return scales;
}

}  // namespace numemu::policies
