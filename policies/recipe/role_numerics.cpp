// Roles bound to the layers of a graph, and their counts.
#include "policies/recipe/role_numerics.hpp"

#include <fmt/format.h>

#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/fixed_scales.hpp"
#include "policies/recipe/plain_operand.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {
namespace {

/// Scales that clip need saturation; entropy calibration compares histograms of equal steps.
void require_clipping(const CalibrationPolicy& calibration,
                      const std::optional<RolePolicy>& activation, const std::string& layer,
                      const std::string& where) {
  using Rule = CalibrationPolicy::Rule;
  if (!activation || !has_static_scale(calibration, *activation)) return;
  const bool clips = calibration.rule == Rule::mse || calibration.rule == Rule::kl ||
                     (calibration.rule == Rule::percentile && calibration.percentile < 100);
  if (clips && activation->overflow != Overflow::saturate) {
    throw Error(
        fmt::format("{}: calibrate.rule: layer {}: expected overflow 'saturate' where the "
                    "rule clips, found '{}'",
                    where, layer, to_string(activation->overflow)));
  }
  if (calibration.rule == Rule::kl && activation->format->kind == Kind::floating) {
    throw Error(
        fmt::format("{}: calibrate.rule: layer {}: expected an integer format for 'kl', "
                    "whose histogram bins are equal steps; the steps of {} are not equal (use mse "
                    "or percentile)",
                    where, layer, activation->format->name));
  }
}

/// Both operands of a product with zero points are integers with scales of their own, whose sums
/// the unit gives as they are.
void require_shifted(const CalibrationPolicy& calibration, const RecipeLayer& layer, bool two,
                     const std::string& name, const std::string& where) {
  const std::optional<RoleQuantizer>& left = layer.activation;
  const std::optional<RoleQuantizer>& right = two ? layer.second : layer.weight;
  const auto shifted = [](const std::optional<RoleQuantizer>& q) {
    return q && q->policy().zero_point;
  };
  const bool left_shifted = shifted(left);
  if (!left_shifted && !(two && shifted(right))) return;
  const std::string role(net::to_string(left_shifted ? net::Role::activation : layer.right));
  const auto refuse = [&](const std::string& expected) {
    throw Error(fmt::format("{}: roles.{}.zero_point: layer {}: {}", where, role, name, expected));
  };
  using Rule = CalibrationPolicy::Rule;
  if (calibration.rule != Rule::absmax && calibration.rule != Rule::percentile) {
    refuse(
        "expected calibrate.rule absmax or percentile(P): a zero point belongs to a static range, "
        "and the other rules choose magnitudes");
  }
  for (const std::optional<RoleQuantizer>* operand : {&left, &right}) {
    const bool first = operand == &left;
    const std::string_view which = net::to_string(first ? net::Role::activation
                                                  : two ? layer.right
                                                        : net::Role::weight);
    const bool integers = *operand && !(*operand)->blocks() &&
                          (*operand)->policy().format->kind == Kind::integer &&
                          (*operand)->policy().format->bits <= 8;
    if (!integers) {
      refuse(
          fmt::format("expected integers of at most 8 bits without blocks on both sides, found "
                      "{} as {}",
                      *operand ? (*operand)->policy().describe() : "float32", which));
    }
  }
  if (two && !waits_for_results(right->policy(), layer.right)) {
    refuse(fmt::format("expected scales of {} that are applied to the results: one, or per {}",
                       net::to_string(layer.right),
                       layer.right == net::Role::value ? "channel" : "token ('row')"));
  }
  const unit::UnitDescription* const unit = layer.recipe.fprop->description();
  if (unit != nullptr && (unit->scaling.block != 0 || !unit->sparsity.dense()))
    refuse("expected a dense unit without block scales, not " + layer.recipe.fprop->row().name);
}

/// The right operand of attention on the unit, which the schema cannot check against a weight.
void require_second(const RecipeLayer& layer, const std::string& name, const std::string& where) {
  if (!layer.second) return;
  const RolePolicy& policy = layer.second->policy();
  const unit::Unit& unit = *layer.recipe.fprop;
  const std::string_view role = net::to_string(layer.right);
  const bool attention = layer.right != net::Role::activation;
  if (attention && policy.block == nullptr && !waits_for_results(policy, layer.right)) {
    if (unit.accepts_b(float32())) return;
    throw Error(fmt::format(
        "{}: roles.{}.granularity: layer {}: expected scales per {}, which are applied to the "
        "results, or a unit that takes float32 and reads dequantized numbers, not {}",
        where, role, name, layer.right == net::Role::value ? "'channel'" : "'row'",
        unit.row().name));
  }
  if (!layer.recipe.apart(layer.right)) return;
  try {
    require_operand(unit, policy, Side::b);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: roles.{}: layer {}: {}", where, role, name, error.what()));
  }
}

void require_no_history(const std::optional<RolePolicy>& policy, std::string_view layer,
                        const char* role, const std::string& where) {
  if (!policy || policy->history == 0) return;
  throw Error(
      fmt::format("{}: roles.{}.scale of {}: expected a scale computed from the current tensor; "
                  "delayed scaling supports weight, activation and gradient",
                  where, role, layer));
}

}  // namespace

RoleNumerics::RoleNumerics(const Recipe& recipe, const net::Graph& graph, const std::string& where)
    : recipe_(recipe) {
  std::vector<std::string> names;
  for (const net::GemmLayer& gemm : net::gemm_layers(graph)) {
    const std::string& name = names.emplace_back(gemm.name);
    const bool two = gemm.weight == nullptr;
    auto& layer = layers_[name] =
        std::make_unique<RecipeLayer>(recipe.layer(name), two ? gemm.right : net::Role::activation);
    require_clipping(recipe.calibration(), layer->recipe.activation, name, where);
    if (two && layer->activation && has_fixed_scales(layer->activation->policy().scale)) {
      throw Error(fmt::format(
          "{}: ranges: layer {}: expected a layer with a weight, it multiplies two activations",
          where, name));
    }
    if (two)
      require_clipping(recipe.calibration(), layer->recipe.role(gemm.right, {}), name, where);
    if (two) require_second(*layer, name, where);
    require_shifted(recipe.calibration(), *layer, two, name, where);
  }
  for (const net::Node& node : graph.nodes) {
    auto& stored = nodes_[node.name] = std::make_unique<RecipeLayer>(recipe.layer(node.name));
    const LayerRecipe& r = stored->recipe;
    stores_ =
        stores_ || r.vector || r.saved || r.state || r.second_state || r.exchange || r.embedding;
    require_no_history(r.vector, node.name, "vector", where);
    require_no_history(r.output, node.name, "output", where);
    require_no_history(r.saved, node.name, "saved", where);
    require_no_history(r.state, node.name, "state", where);
    require_no_history(r.second_state, node.name, "state", where);
    require_no_history(r.exchange, node.name, "exchange", where);
    if (!layers_.contains(node.name)) names.push_back(node.name);
  }
  recipe.require_matches(names, where);
  for (const net::Parameter* parameter : graph.parameters()) parameters_.push_back(parameter->name);
}

void RoleNumerics::require_trainable(const std::string& where) const {
  const auto refuse = [&](const std::optional<RolePolicy>& policy, Granularity granularity,
                          const char* role, const char* why, const std::string& layer) {
    if (!policy || policy->granularity != granularity) return;
    throw Error(fmt::format(
        "{}: roles.{}.granularity: expected 'tensor' in training: {} of layer "
        "{} reduces along the axis of the {} scales",
        where, role, why, layer, granularity == Granularity::channel ? "channel" : "row"));
  };
  for (const auto& [name, layer] : layers_) {
    const LayerRecipe& r = layer->recipe;
    for (const std::optional<RoleQuantizer>* operand : {&layer->activation, &layer->second}) {
      if (!*operand || !(*operand)->policy().zero_point) continue;
      throw Error(fmt::format(
          "{}: roles.{}.zero_point: expected 'none' in training (layer {}): zero points "
          "are chosen with static scales, for inference",
          where,
          net::to_string(operand == &layer->activation ? net::Role::activation : layer->right),
          name));
    }
    refuse(r.weight, Granularity::channel, "weight", "dgrad", name);
    refuse(r.weight, Granularity::row, "weight", "dgrad", name);
    refuse(r.activation, Granularity::row, "activation", "wgrad", name);
    refuse(r.gradient_wgrad, Granularity::row, "gradient", "wgrad", name);
  }
}

RecipeLayer& RoleNumerics::layer(std::string_view name) const {
  const auto found = layers_.find(name);
  if (found == layers_.end()) throw Error(fmt::format("no layer '{}' multiplies", name));
  return *found->second;
}

const LayerRecipe& RoleNumerics::recipe(std::string_view name) const { return layer(name).recipe; }

const PlainOperand* RoleNumerics::frozen_weight(std::string_view name) const {
  const RecipeLayer& found = layer(name);
  return found.weight_ready ? &found.frozen_weight : nullptr;
}

bool RoleNumerics::holds_weight(std::string_view name) const {
  const RecipeLayer& found = layer(name);
  return (found.weight_ready || found.sliced_weight != nullptr) && !found.reads_weight;
}

OperandCounts RoleNumerics::counts(std::string_view name, net::GemmKind kind,
                                   net::Role role) const {
  return layer(name).count(kind, role).get();
}

OperandCounts RoleNumerics::counts(std::string_view name, net::GemmKind kind) const {
  OperandCounts sum;
  for (const net::Role role : kRoles) sum += counts(name, kind, role);
  return sum;
}

SaturationCounts RoleNumerics::saturation(std::string_view name) const {
  RecipeLayer& found = layer(name);
  const std::lock_guard lock(found.saturation_mutex);
  return found.saturation;
}

void RoleNumerics::reset_counts() {
  for (auto& [name, layer] : layers_) {
    layer->saturation = {};
    for (auto& kind : layer->counts) {
      for (SharedCounts& operand : kind) operand.set({});
    }
    if (layer->weight_ready)
      layer->count(net::GemmKind::fprop, net::Role::weight).add(layer->frozen_weight.flags);
  }
}

}  // namespace numemu::policies
