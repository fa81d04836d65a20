#include "policies/numerics/role_numerics.hpp"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "emu/net/numerics.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/plain_operand.hpp"
#include "policies/numerics/recipe_product.hpp"
#include "policies/numerics/static_calibration.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/recipe/unit_operands.hpp"
#include "policies/state_bytes.hpp"

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
void require_shifted(const CalibrationPolicy& calibration, const LayerState& layer, bool two,
                     const std::string& name, const std::string& where) {
  const std::optional<RoleQuantizer>& left = layer[RolePart::activation];
  const std::optional<RoleQuantizer>& right = two ? layer.second : layer[RolePart::weight];
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
void require_second(const LayerState& layer, const std::string& name, const std::string& where) {
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
  at(fmt::format("{}: roles.{}: layer {}", where, role, name),
     [&] { require_operand(unit, policy, net::Side::b); });
}

void fix(std::optional<RoleQuantizer>& quantizer, FixedScales scales) {
  RolePolicy policy = quantizer.value().policy();
  policy.fix(std::move(scales));
  quantizer.emplace(policy);
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

}  // namespace

RoleNumerics::RoleNumerics(const BoundRecipe& recipe)
    : RoleNumerics(recipe, stored_roles(recipe)) {}

RoleNumerics::RoleNumerics(const BoundRecipe& recipe, std::unique_ptr<StoredRoles> stored)
    : Forwarding(*stored), recipe_(recipe), stored_(std::move(stored)) {
  const std::string& where = recipe.where();
  std::vector<std::string> names;
  const bool one_sample = takes_one_sample(recipe.graph());
  for (const auto& [gemm, roles] : recipe.products()) {
    const std::string& name = names.emplace_back(gemm.name);
    const bool two = gemm.weight == nullptr;
    auto& layer = layers_[name] =
        std::make_unique<LayerState>(roles, two ? gemm.right : net::Role::activation);
    layer->one_sample = one_sample;
    require_clipping(recipe->calibration(), roles[RolePart::activation], name, where);
    if (two && layer->quantizers[RolePart::activation] &&
        layer->quantizers[RolePart::activation]->policy().fixed) {
      throw Error(fmt::format(
          "{}: ranges: layer {}: expected a layer with a weight, it multiplies two activations",
          where, name));
    }
    if (two) require_clipping(recipe->calibration(), roles.role(gemm.right, {}), name, where);
    if (two) require_second(*layer, name, where);
    require_shifted(recipe->calibration(), *layer, two, name, where);
  }
  for (const net::Node& node : recipe.graph().nodes) {
    if (!layers_.contains(node.name)) names.push_back(node.name);
  }
  recipe->require_matches(names, where);
}

void RoleNumerics::use_scales(std::string_view name, RolePart part, FixedScales scales) {
  fix(layer(name).quantizers[part], std::move(scales));
}

void RoleNumerics::use_second_scale(std::string_view name, const TensorScale& scale) {
  fix(layer(name).second, {scale});
}

void RoleNumerics::use_result_codes(std::string_view name, ResultCodes codes) {
  layer(name).result_codes = std::move(codes);
}

void RoleNumerics::require_trainable(const std::string& where) const {
  for (const auto& [name, layer] : layers_) {
    // Where scales or zero points vary along the depth of a product of backward, its unit reads
    // dequantized numbers.
    const auto require = [&where, &name = name, &layer = layer](
                             const std::optional<RoleQuantizer>& operand, net::Role role,
                             Granularity granularity, net::GemmKind kind, net::Side side) {
      if (!operand || operand->blocks()) return;
      const RolePolicy& policy = operand->policy();
      if (policy.granularity != granularity && !policy.zero_point) return;
      const unit::Unit& unit = layer->recipe.unit(kind);
      if (side == net::Side::a ? unit.accepts_a(float32()) : unit.accepts_b(float32())) return;
      throw Error(fmt::format(
          "{}: roles.{}.{}: {} of layer {} reduces along the axis of the scales: expected a unit "
          "in gemms.{} that takes float32 and reads dequantized numbers, not {}",
          where, net::to_string(role), policy.zero_point ? "zero_point" : "granularity",
          net::to_string(kind), name, net::to_string(kind), unit.row().name));
    };
    using net::GemmKind;
    require((*layer)[RolePart::weight], net::Role::weight, Granularity::channel, GemmKind::dgrad,
            net::Side::b);
    require((*layer)[RolePart::activation], net::Role::activation, Granularity::row,
            GemmKind::wgrad, net::Side::b);
    if (layer->right != net::Role::activation) {
      for (const Granularity granularity : {Granularity::row, Granularity::channel})
        require(layer->second, layer->right, granularity, GemmKind::dgrad, net::Side::b);
    }
    require((*layer)[RolePart::gradient_wgrad], net::Role::gradient, Granularity::row,
            GemmKind::wgrad, net::Side::a);
  }
}

LayerState& RoleNumerics::layer(std::string_view name) const {
  const auto found = layers_.find(name);
  if (found == layers_.end()) throw Error(fmt::format("no layer '{}' multiplies", name));
  return *found->second;
}

const LayerRecipe& RoleNumerics::recipe(std::string_view name) const { return layer(name).recipe; }

const PlainOperand* RoleNumerics::frozen_weight(std::string_view name) const {
  const LayerState& found = layer(name);
  return found.weight_ready ? &found.frozen_weight : nullptr;
}

bool RoleNumerics::holds_weight(std::string_view name) const {
  const LayerState& found = layer(name);
  return (found.weight_ready || found.sliced_weight != nullptr) && !found.reads_weight;
}

OperandCounts RoleNumerics::operand_counts(std::string_view name, net::GemmKind kind,
                                           net::Role role) const {
  return layer(name).count(kind, role).get();
}

OperandCounts RoleNumerics::operand_counts(std::string_view name, net::GemmKind kind) const {
  OperandCounts sum;
  for (const net::Role role : kRoles) sum += operand_counts(name, kind, role);
  return sum;
}

SaturationCounts RoleNumerics::saturation(std::string_view name) const {
  LayerState& found = layer(name);
  const std::lock_guard lock(found.saturation_mutex);
  return found.saturation;
}

bool RoleNumerics::gives_fused(std::string_view name) const {
  const std::optional<ResultCodes>& codes = layer(name).result_codes;
  return codes && codes->fused;
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

namespace {

/// Whether a text has the name as a word, and not within another.
bool says(std::string_view text, std::string_view name) {
  const auto in_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0);
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + name.size())) return true;
  return false;
}

}  // namespace

void RoleNumerics::product(const net::Step& step, const net::Product& product) {
  LayerState& found = layer(product.layer);
  ProductRun run{.seed = recipe_->seed(),
                 .phase = step.phase,
                 .frozen = found.frozen,
                 .first_sample = step.first_sample(),
                 .heard = &heard_};
  if (step.phase == net::Phase::training) {
    run.step = step.index;
    run.repetition = product.repetition_in(step);
  }
  try {
    run_product(found, product, run);
  } catch (const Error& error) {
    if (says(error.what(), product.layer)) throw;
    throw Error(fmt::format("layer {}: {}", product.layer, error.what()), error.kind());
  }
}

void RoleNumerics::freeze(const net::Graph& graph, const Calibration& calibration,
                          const ReadInput& read, SeenTensors* shared) {
  forget_weights();
  StaticCalibration scales(recipe_->calibration(), calibration.samples, read, shared);
  for (auto& [name, layer] : layers_) {
    layer->frozen = true;
    layer->activation_scale.reset();
    layer->second_scale.reset();
    if ((*layer)[RolePart::activation])
      layer->activation_scale = (*layer)[RolePart::activation]->policy().fixed_scale();
    if (layer->second) layer->second_scale = layer->second->policy().fixed_scale();
    scales.add(name, *layer);
  }
  stored_->freeze();
  // Layer by layer, as the pass computes them: no more than a pass is in memory.
  if (scales.take_known())
    calibration.for_each([&](std::int64_t first, const std::vector<net::Tensor>& inputs) {
      listen(graph, inputs,
             {.operands = [&](std::string_view name, const net::Tensor& left,
                              const net::Tensor* right) { scales.see(first, name, left, right); },
              .output = nullptr});
    });
  scales.settle();
}

void RoleNumerics::forget_weights() {
  for (auto& [name, layer] : layers_) {
    layer->weight_ready = false;
    layer->sliced_weight.reset();
    layer->reads_weight = false;
    layer->prepared_weight.reset();
  }
  stored_->forget_tables();
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

std::vector<std::int64_t> RoleNumerics::counts() const {
  std::vector<std::int64_t> all;
  for (const auto& [name, layer] : layers_) {
    for (const auto& kind : layer->counts) {
      for (const SharedCounts& operand : kind) {
        const OperandCounts c = operand.get();
        all.insert(all.end(), {c.elements, c.overflow, c.underflow, c.invalid});
      }
    }
  }
  return all;
}

void RoleNumerics::add_counts(std::span<const std::int64_t> more) {
  std::size_t at = 0;
  for (const auto& [name, layer] : layers_) {
    for (auto& kind : layer->counts) {
      for (SharedCounts& operand : kind) {
        OperandCounts sum = operand.get();
        sum += {more[at], more[at + 1], more[at + 2], more[at + 3]};
        operand.set(sum);
        at += 4;
      }
    }
  }
}

void RoleNumerics::save_state(net::NamedState& state) const {
  for (const auto& [name, layer] : layers_) {
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

void RoleNumerics::load_state(const net::NamedState& state) {
  const std::map<std::string, std::string> by_name(state.begin(), state.end());
  for (auto& [name, layer] : layers_) {
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        layer->count(kind, role).set({});
        const auto counts = by_name.find(counts_name(name, role, kind));
        if (counts != by_name.end())
          load_counts(counts->first, counts->second, layer->count(kind, role));
      }
    }
  }
}

}  // namespace numemu::policies
