// A recipe bound to a graph: its layers, calibration, steps, counts and state.
#include "policies/recipe/recipe_numerics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "emu/net/gemm_layers.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/adaprune.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/state_bytes.hpp"
#include "policies/recipe/thread_step.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kLossScaleState = "recipe/loss_scale";
constexpr std::array<const char*, 2> kThresholdPlaces = {"operand", "input"};

std::string mask_name(std::string_view layer) { return fmt::format("recipe/mask/{}", layer); }

std::string threshold_name(std::string_view layer, std::size_t place) {
  return fmt::format("recipe/threshold/{}/{}", layer, kThresholdPlaces[place]);
}

std::string history_name(std::string_view layer, net::Role role, net::GemmKind kind) {
  return fmt::format("recipe/history/{}/{}/{}", layer, net::to_string(role), net::to_string(kind));
}

std::string counts_name(std::string_view layer, net::Role role, net::GemmKind kind) {
  return fmt::format("recipe/counts/{}/{}/{}", layer, net::to_string(role), net::to_string(kind));
}

void load_counts(const std::string& name, const std::string& bytes, SharedCounts& counts) {
  const std::vector<std::uint64_t> n = from_bytes(name, bytes);
  if (n.size() != 4)
    throw Error("state " + name + ": expected 4 numbers, found " + std::to_string(n.size()));
  const auto at = [&](int i) { return static_cast<std::int64_t>(n[i]); };
  counts.set({at(0), at(1), at(2), at(3)});
}

constexpr std::int64_t kCalibratedAtOnce = 32;  // samples whose activations are held together

/// The parameter that is a layer's weight.
std::string parameter_name(const net::GemmLayer& layer) {
  for (const net::Parameter& parameter : std::as_const(*layer.node->op).parameters()) {
    if (&parameter.value == layer.weight) return parameter.name;
  }
  return "";
}

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
                    "whose histogram bins are equal steps; {} has other steps (use mse or "
                    "percentile)",
                    where, layer, activation->format->name));
  }
}

void require_no_history(const std::optional<RolePolicy>& policy, std::string_view layer,
                        const char* role, const std::string& where) {
  if (!policy || policy->history == 0) return;
  throw Error(
      fmt::format("{}: roles.{}.scale of {}: expected a scale of the tensor in hand; delayed "
                  "scaling serves weight, activation and gradient",
                  where, role, layer));
}

}  // namespace

RandomSource operand_random(std::uint64_t seed, std::string_view layer, net::Role role,
                            std::int64_t step, net::GemmKind kind, std::int64_t repetition) {
  RandomSource source;
  source.seed = seed;
  source.stream = Stream::quantize;
  const std::string times = repetition == 0 ? "" : fmt::format(".{}", repetition);
  source.tensor = tensor_word(
      fmt::format("{}/{}/{}{}/{}", layer, net::to_string(role), step, times, net::to_string(kind)));
  return source;
}

RecipeNumerics::RecipeNumerics(const Recipe& recipe, const net::Graph& graph,
                               const std::string& where)
    : recipe_(recipe), loss_scaler_(recipe.update().loss_scale) {
  std::vector<std::string> names = net::gemm_layer_names(graph);
  for (const std::string& name : names) {
    layers_[name] = std::make_unique<RecipeLayer>(recipe.layer(name));
    require_clipping(recipe.calibration(), layers_[name]->recipe.activation, name, where);
  }
  for (const net::GemmLayer& gemm : net::gemm_layers(graph)) {
    RecipeLayer& found = *layers_[gemm.name];
    if (gemm.weight == nullptr && found.recipe.activation_mask) {
      throw Error(fmt::format(
          "{}: roles.activation.mask: layer {} multiplies two activations: expected null", where,
          gemm.name));
    }
    if (gemm.weight == nullptr || !found.recipe.weight_mask) continue;
    found.weight_mask = std::make_unique<WeightMask>(
        *found.recipe.weight_mask,
        weight_mask_random(recipe.seed(), gemm.name, *found.recipe.weight_mask));
    masked_parameters_[parameter_name(gemm)] = &found;
  }
  for (const net::Node& node : graph.nodes) {
    auto& stored = nodes_[node.name] = std::make_unique<RecipeLayer>(recipe.layer(node.name));
    const LayerRecipe& r = stored->recipe;
    stores_ = stores_ || r.vector || r.saved || r.state || r.exchange;
    require_no_history(r.vector, node.name, "vector", where);
    require_no_history(r.output, node.name, "output", where);
    require_no_history(r.saved, node.name, "saved", where);
    require_no_history(r.state, node.name, "state", where);
    require_no_history(r.exchange, node.name, "exchange", where);
    if (!layers_.contains(node.name)) names.push_back(node.name);
  }
  recipe.require_matches(names, where);
  for (const net::Parameter* parameter : graph.parameters()) parameters_.push_back(parameter->name);
}

void RecipeNumerics::solve_kept_weights(const net::Graph& graph, std::int64_t samples,
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
    const std::vector<std::uint8_t> keep = mask.mask_of(weight, matrices);
    mask.fix(adaprune.solve(name, *mask.passing(weight, matrices), keep));
  }
}

void RecipeNumerics::freeze(const net::Graph& graph, std::int64_t available,
                            const CalibrationBatch& batch) {
  std::map<std::string, std::pair<StaticScale, StaticScale>, std::less<>> scales;
  for (auto& [name, layer] : layers_) {
    layer->frozen = true;
    layer->weight_ready = false;
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
        throw Error("calibration: the network asked for no product of layer " + name);
      pair.first.see(input->second.data.data(), input->second.size());
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

void RecipeNumerics::freeze(const net::Graph& graph, const FloatReference& reference) {
  freeze(graph, reference.samples(), [&](std::int64_t first, std::int64_t count) {
    std::vector<net::Tensor> batch;
    for (const net::Tensor& x : reference.batch) batch.push_back(samples_of(x, first, count));
    return batch;
  });
}

std::map<std::string, float, std::less<>> RecipeNumerics::static_scales() const {
  std::map<std::string, float, std::less<>> scales;
  for (const auto& [name, layer] : layers_) {
    if (layer->activation_scale) scales[name] = *layer->activation_scale;
  }
  return scales;
}

void RecipeNumerics::require_trainable(const std::string& where) const {
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
    refuse(r.weight, Granularity::channel, "weight", "dgrad", name);
    refuse(r.weight, Granularity::row, "weight", "dgrad", name);
    refuse(r.activation, Granularity::row, "activation", "wgrad", name);
    refuse(r.gradient_wgrad, Granularity::row, "gradient", "wgrad", name);
    if (r.weight_mask && r.weight_mask->repair == Repair::adaprune) {
      throw Error(
          fmt::format("{}: roles.weight.mask: layer {}: expected repair=none or "
                      "repair=absorb in training: adaprune solves trained weights",
                      where, name));
    }
  }
}

void RecipeNumerics::begin_step(const net::Step& step) {
  ThreadStep& here = thread_step();
  here.phase = step.phase;
  here.first_sample = 0;
  if (step.phase == net::Phase::inference) {
    if (step.samples != nullptr && !step.samples->empty())
      here.first_sample = step.samples->front();
    return;
  }
  training_step_ = step.index;
  for (auto& [name, layer] : layers_) {
    layer->products_in_step = {0, 0, 0};
    layer->clipped.clear();
    for (StepThresholds& thresholds : layer->thresholds) thresholds.begin_step();
  }
}

void RecipeNumerics::end_step(const net::Step& step) {
  if (step.phase != net::Phase::training) return;
  ++steps_ended_;
  for (auto& [name, layer] : layers_) {
    for (auto& [key, history] : layer->histories)
      history.end_step(layer->quantizer(key.first, key.second)->policy().history);
  }
}

RecipeLayer& RecipeNumerics::layer(std::string_view name) const {
  const auto found = layers_.find(name);
  if (found == layers_.end()) throw Error(fmt::format("no layer '{}' multiplies", name));
  return *found->second;
}

const WeightMask* RecipeNumerics::weight_mask(std::string_view name) const {
  return layer(name).weight_mask.get();
}

const LayerRecipe& RecipeNumerics::recipe(std::string_view name) const {
  return layer(name).recipe;
}

OperandCounts RecipeNumerics::counts(std::string_view name, net::GemmKind kind,
                                     net::Role role) const {
  return layer(name).count(kind, role).get();
}

OperandCounts RecipeNumerics::counts(std::string_view name, net::GemmKind kind) const {
  OperandCounts sum;
  for (const net::Role role : kRoles) sum += counts(name, kind, role);
  return sum;
}

void RecipeNumerics::reset_counts() {
  for (auto& [name, layer] : layers_) {
    for (auto& kind : layer->counts) {
      for (SharedCounts& operand : kind) operand.set({});
    }
    if (layer->weight_ready)
      layer->count(net::GemmKind::fprop, net::Role::weight).add(layer->frozen_weight.flags);
  }
}

float RecipeNumerics::loss_scale() { return loss_scaler_.value(); }

bool RecipeNumerics::accept_gradients(const std::vector<net::Tensor>& gradients) {
  return loss_scaler_.accept(gradients);
}

void RecipeNumerics::save_state(std::vector<std::pair<std::string, std::string>>& state) const {
  state.emplace_back(kLossScaleState, loss_scaler_.state());
  for (const auto& [name, layer] : layers_) {
    if (layer->weight_mask) state.emplace_back(mask_name(name), layer->weight_mask->state());
    for (std::size_t place = 0; layer->masked && place < layer->thresholds.size(); ++place)
      state.emplace_back(threshold_name(name, place), layer->thresholds[place].state());
    for (const auto& [key, history] : layer->histories)
      state.emplace_back(history_name(name, key.first, key.second), history.state());
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        const OperandCounts c = layer->count(kind, role).get();
        if (c == OperandCounts{}) continue;
        const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
        state.emplace_back(counts_name(name, role, kind),
                           to_bytes({unsigned_of(c.elements), unsigned_of(c.overflow),
                                     unsigned_of(c.underflow), unsigned_of(c.invalid)}));
      }
    }
  }
}

void RecipeNumerics::load_state(const std::vector<std::pair<std::string, std::string>>& state) {
  const std::map<std::string, std::string> by_name(state.begin(), state.end());
  const auto loss = by_name.find(kLossScaleState);
  if (loss != by_name.end()) loss_scaler_.load(loss->first, loss->second);
  for (auto& [name, layer] : layers_) {
    layer->histories.clear();
    if (layer->weight_mask) {
      const auto mask = by_name.find(mask_name(name));
      layer->weight_mask->load(mask_name(name), mask == by_name.end() ? "" : mask->second);
    }
    for (std::size_t place = 0; place < layer->thresholds.size(); ++place) {
      const auto thresholds = by_name.find(threshold_name(name, place));
      layer->thresholds[place].load(threshold_name(name, place),
                                    thresholds == by_name.end() ? "" : thresholds->second);
    }
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        const auto history = by_name.find(history_name(name, role, kind));
        const RoleQuantizer* const quantizer = layer->quantizer(role, kind);
        if (history != by_name.end() && quantizer != nullptr && quantizer->policy().history > 0)
          layer->histories[{role, kind}].load(history->first, history->second);
        layer->count(kind, role).set({});
        const auto counts = by_name.find(counts_name(name, role, kind));
        if (counts != by_name.end())
          load_counts(counts->first, counts->second, layer->count(kind, role));
      }
    }
  }
}

}  // namespace numemu::policies
