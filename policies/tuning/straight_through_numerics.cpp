#include "policies/tuning/straight_through_numerics.hpp"

#include <algorithm>

#include "emu/net/gemm_layers.hpp"
#include "policies/recipe/fixed_scales.hpp"

namespace numemu::policies {
namespace {

/// Gradients and what is kept for them in float32.
Json without_gradients(Json recipe) {
  const auto strip = [](Json& entry, bool base) {
    if (entry.contains("roles")) {
      for (const char* role : {"gradient", "saved"}) {
        if (base) entry["roles"][role] = nullptr;
        if (!base) entry["roles"].erase(role);
      }
    }
    if (entry.contains("gemms")) {
      for (const char* kind : {"dgrad", "wgrad"}) {
        if (base) entry["gemms"][kind] = {{"unit", "neutral.f32.sequential"}};
        if (!base) entry["gemms"].erase(kind);
      }
    }
  };
  strip(recipe, true);
  recipe.erase("saved");
  for (Json& layer : recipe["layers"]) {
    strip(layer, false);
    layer.erase("saved");
  }
  return recipe;
}

std::unique_ptr<RecipeNumerics> forward_numerics(const Tuning& tuning) {
  const Recipe recipe = Recipe::parse(without_gradients(tuned_recipe(tuning).json()), tuning.where);
  auto numerics = std::make_unique<RecipeNumerics>(recipe, tuning.graph, tuning.where);
  numerics->freeze(tuning.graph, tuning.calibration.samples, tuning.calibration.batch);
  return numerics;
}

}  // namespace

StraightThroughNumerics::StraightThroughNumerics(const Tuning& tuning)
    : OwnedNumerics{forward_numerics(tuning)}, Forwarding(*owned) {
  for (const net::GemmLayer& layer : net::gemm_layers(tuning.graph)) {
    const std::optional<RolePolicy>& role = owned->recipe(layer.name).activation;
    if (!role) continue;
    if (const std::optional<TensorScale> fixed = fixed_scale(role->scale))
      reach_[layer.name] = range_of(*role, *fixed);
  }
}

void StraightThroughNumerics::begin_step(const net::Step& step) {
  Forwarding::begin_step(step);
  beyond_.clear();  // the first layer has no backward
}

void StraightThroughNumerics::product(const net::Step& step, const net::Product& product) {
  Forwarding::product(step, product);
  const auto reach = reach_.find(product.layer);
  if (reach == reach_.end() || product.kind == net::GemmKind::wgrad) return;
  std::vector<std::vector<bool>>& kept = beyond_[reach->first];
  if (product.kind == net::GemmKind::fprop) {
    const std::vector<float>& x = product.a.source->data;
    std::vector<bool>& beyond = kept.emplace_back(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      beyond[i] = x[i] < reach->second.low || x[i] > reach->second.high;
    return;
  }
  const std::vector<bool> beyond = std::move(kept.back());
  kept.pop_back();
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    if (beyond[i]) product.d[i] = 0;
  }
}

OnlyTrained::OnlyTrained(net::Graph& graph, const std::vector<std::string>& names)
    : parameters_(graph.parameters()) {
  for (net::Parameter* parameter : parameters_) {
    before_.push_back(parameter->trained);
    parameter->trained = std::find(names.begin(), names.end(), parameter->name) != names.end();
  }
}

OnlyTrained::~OnlyTrained() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i]->trained = before_[i];
}

}  // namespace numemu::policies
