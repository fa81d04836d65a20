#include "policies/bits/effective_bits.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "emu/net/memory_plan.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/blocks/block_layout.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/mask/weight_mask.hpp"
#include "policies/numerics/operands/scale_groups.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/table/base/table_rule.hpp"

namespace numemu::policies {

namespace {

constexpr double kFloat32Bits = 32;
constexpr double kScaleBits = 32;
constexpr double kBitsOfByte = 8;

/// Of a tensor whose dense form has `dense` bits, and its mask: as many scales and elements as are
/// kept, with the places of those in groups, or a bit for every element of a free mask.
double masked_bits(const MaskPolicy& mask, const MaskLayout& layout, double dense) {
  const double elements = static_cast<double>(layout.size());
  if (elements == 0) return 0;
  const KeptElements kept = kept_elements(mask, layout);
  const double share = (kept.positions + kept.others) / elements;
  if (mask.rule->span == MaskSpan::tensor) return share < 1 ? dense * share + elements : dense;
  return dense * share + kept.positions * unit::index_bits(mask.pattern);
}

/// Activations and gradients, with groups along their channels.
MaskLayout channel_layout(const net::Shape& shape) {
  const std::int64_t width = shape.empty() ? 1 : shape.back();
  return {1, width == 0 ? 0 : net::element_count(shape) / width, 1, width, false};
}

/// A mean over elements.
class Mean {
 public:
  void add(const std::optional<RolePolicy>& policy, const net::Shape& shape,
           const std::optional<MaskPolicy>& mask = std::nullopt, const MaskLayout& layout = {}) {
    add(stored_bits(policy, shape), shape, mask, layout);
  }
  /// Of a tensor with that many bits in its dense form.
  void add(double dense, const net::Shape& shape, const std::optional<MaskPolicy>& mask,
           const MaskLayout& layout) {
    bits_ += mask ? masked_bits(*mask, layout, dense) : dense;
    elements_ += static_cast<double>(net::element_count(shape));
  }
  double value() const { return elements_ > 0 ? bits_ / elements_ : kFloat32Bits; }

 private:
  double bits_ = 0, elements_ = 0;
};

/// Stored bits of an activation that products read.
double operand_bits(const CalibrationPolicy& calibration, const net::GemmLayer& layer,
                    net::Role operand, const std::optional<RolePolicy>& policy,
                    const net::Shape& shape) {
  // One scale and zero point for all samples, however many they are.
  if (policy && has_static_scale(calibration, *policy))
    return policy->format->bits * static_cast<double>(net::element_count(shape));
  const bool scales = policy && policy->block == nullptr && net::element_count(shape) > 0 &&
                      policy->granularity != Granularity::tensor && policy->stores_scale();
  if (!scales) return stored_bits(policy, shape, product_depth(layer, shape));
  const std::int64_t count = scale_groups(*policy, layer, operand, shape, 1).count;
  return policy->format->bits * static_cast<double>(net::element_count(shape)) +
         kScaleBits * static_cast<double>(count);
}

net::Shape one_sample(net::Shape shape) {
  if (!shape.empty()) shape[0] = 1;
  return shape;
}

}  // namespace

std::int64_t product_depth(const net::GemmLayer& layer, const net::Shape& activation) {
  if (layer.weight != nullptr && layer.weight->dim(0) > 0)
    return layer.weight->size() / layer.weight->dim(0);
  return activation.empty() ? 1 : activation.back();
}

EffectiveBits effective_bits(const BoundRecipe& recipe, const FloatReference& reference) {
  const net::Graph& graph = recipe.graph();
  Mean weight, activation, gradient, vector, output, saved, state, exchange, products;
  std::map<const net::Tensor*, const LayerRecipe*> of_weight;
  for (const auto& [layer, r] : recipe.products()) {
    if (layer.weight != nullptr) of_weight[layer.weight] = &r;
    for (const LayerTensors* operands : {&reference.inputs, &reference.seconds}) {
      const auto found = operands->find(layer.name);
      if (found == operands->end()) continue;
      const net::Shape shape = one_sample(found->second.shape);
      const net::Role role = operands == &reference.inputs ? net::Role::activation : layer.right;
      activation.add(operand_bits(recipe->calibration(), layer, role,
                                  r.role(role, net::GemmKind::fprop), shape),
                     shape, r.masks[RolePart::activation], channel_layout(shape));
    }
    const auto result = reference.outputs.find(layer.name);
    if (result == reference.outputs.end()) continue;
    const net::Shape shape = one_sample(result->second.shape);
    gradient.add(r[RolePart::gradient_dgrad], shape, r.masks[RolePart::gradient_dgrad],
                 channel_layout(shape));
    MaskLayout over_rows = channel_layout(shape);
    over_rows.along_rows = true;
    gradient.add(r[RolePart::gradient_wgrad], shape, r.masks[RolePart::gradient_wgrad], over_rows);
    output.add(r[RolePart::output], shape);
  }
  std::vector<net::Shape> samples;
  for (const net::GraphInput& input : graph.inputs) {
    samples.push_back(input.shape);
    samples.back().insert(samples.back().begin(), 1);
  }
  const std::vector<net::Shape> values = net::value_shapes(graph, samples);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const LayerRecipe& r = recipe.layer(node.name);
    const net::Shape& shape = values[graph.inputs.size() + i];
    if (node.op->result() == net::ResultKind::vector) vector.add(r[RolePart::vector], shape);
    if (node.op->result() != net::ResultKind::view) {
      const bool blocks =
          r[RolePart::saved] && r[RolePart::saved]->block != nullptr;  // along the whole sample
      saved.add(r[RolePart::saved], blocks ? net::Shape{1, net::element_count(shape)} : shape);
    }
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
      if (!parameter.trained && !parameter.is_tied()) continue;
      const auto found = of_weight.find(&parameter.value);
      if (found == of_weight.end()) {
        const bool table = &parameter.value == net::table_of(node);
        const TableRule* const rule = table ? table_rule_of(recipe, node.name) : nullptr;
        if (rule != nullptr) {
          weight.add(rule->stored_bits(parameter.value.shape), parameter.value.shape, std::nullopt,
                     {});
        } else {
          weight.add(table ? r[RolePart::embedding] : std::nullopt, parameter.value.shape);
        }
      } else {
        const std::optional<MaskPolicy>& mask = found->second->masks[RolePart::weight];
        for (Mean* mean : {&weight, &products})
          mean->add((*found->second)[RolePart::weight], parameter.value.shape, mask,
                    mask ? weight_layout(*mask, parameter.value.shape, 1) : MaskLayout{});
      }
      if (parameter.is_tied()) continue;  // one state and one gradient
      state.add(r[RolePart::state_first], parameter.value.shape);
      if (r.given[RolePart::state_second])
        state.add(r[RolePart::state_second], parameter.value.shape);
      exchange.add(r[RolePart::exchange], parameter.value.shape);
    }
  }
  return {weight.value(), activation.value(), gradient.value(), vector.value(),  output.value(),
          saved.value(),  state.value(),      exchange.value(), products.value()};
}

ParameterBytes parameter_bytes(const BoundRecipe& recipe, const net::TrainOptions& options) {
  const net::Graph& graph = recipe.graph();
  const std::vector<const net::Parameter*> parameters = graph.parameters();
  const auto optimizer = net::make_optimizer(options, parameters);
  double elements = 0, bits = 0;
  std::size_t index = 0;
  for (const net::Node& node : graph.nodes) {
    const LayerRecipe& layer = recipe.layer(node.name);
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
      elements += parameter.trained ? static_cast<double>(parameter.value.size()) : 0;
      for (const net::StateTensor& state : optimizer->state(index))
        bits += stored_bits(layer[state_part(state.name)], state.value->shape);
      ++index;
    }
  }
  ParameterBytes bytes;
  const Format* const master = recipe->update().master;
  if (master != nullptr) bytes.master = master->bits / kBitsOfByte;
  if (elements > 0) bytes.state = bits / kBitsOfByte / elements;
  return bytes;
}

bool stores_few_bits(const BoundRecipe& recipe) {
  return recipe->update().master != nullptr ||
         std::ranges::any_of(recipe.graph().nodes, [&](const net::Node& node) {
           const LayerRecipe& layer = recipe.layer(node.name);
           return layer[RolePart::state_first] || layer[RolePart::state_second];
         });
}

}  // namespace numemu::policies
