#include "experiments/predict/injected_roles.hpp"

#include <fmt/format.h>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/memory_plan.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::experiments {
namespace {

/// The value whose elements a value has: operators that only show another shape are passed over.
/// Constants are views without inputs.
int origin(const net::Graph& graph, int value) {
  const int inputs = static_cast<int>(graph.inputs.size());
  while (value >= inputs) {
    const net::Node& node = graph.nodes[value - inputs];
    if (node.op->result() != net::ResultKind::view || node.inputs.empty()) break;
    value = node.inputs[0];
  }
  return value;
}

/// The value whose channels a value has, and whose elements: pooling chooses among those of a
/// channel, relu keeps or drops them. Rounded to one grid they stay on it, so that all have the
/// phases of the first.
int phase_origin(const net::Graph& graph, int value) {
  const int inputs = static_cast<int>(graph.inputs.size());
  for (value = origin(graph, value); value >= inputs; value = origin(graph, value)) {
    const net::Node& node = graph.nodes[value - inputs];
    if (node.op->kind() != "relu" && node.op->kind() != "max_pool") break;
    value = node.inputs.at(0);
  }
  return value;
}

}  // namespace

InjectedRoles::Operand::Operand(const policies::RolePolicy& policy, std::int32_t zero_point)
    : quantizer(policy),
      noise(policy.block != nullptr && policy.block->affine != Affine::sym
                ? PhaseNoise::without_ends(quantizer.conversion())
            : policy.zero_point ? PhaseNoise(quantizer.conversion(), zero_point)
                                : PhaseNoise(quantizer.conversion())) {}

InjectedRoles::InjectedRoles(const policies::BoundRecipe& recipe,
                             const policies::FloatReference& reference,
                             const policies::StaticScales& static_scales,
                             const policies::RoleNumerics::ReadInput& read)
    : seed_(recipe->seed()) {
  const net::Graph& graph = recipe.graph();
  const policies::CalibrationPolicy& calibration = recipe->calibration();
  const std::vector<net::Shape> shapes = net::value_shapes(graph, net::batch_shapes(graph, 1));
  const auto channels_of = [&](int value) {
    const net::Shape& shape = shapes[static_cast<std::size_t>(value)];
    return shape.empty() ? 1 : shape.back();
  };
  const bool one_sample = policies::takes_one_sample(graph);
  const auto stored = [&](const policies::RolePolicy& policy, int result) {
    auto operand = std::make_unique<Operand>(policy);
    operand->one_sample = one_sample;
    const int value = phase_origin(graph, result);
    operand->name = fmt::format("{}/activation", graph.value_name(value));
    operand->channels = channels_of(value);
    stores_ = true;
    return operand;
  };
  for (const policies::BoundProduct& product : recipe.products()) {
    const net::GemmLayer& gemm = product.gemm;
    const policies::LayerRecipe& roles = product.roles;
    Layer& layer = layers_[gemm.name];
    const bool whole = gemm.name == gemm.node->name;
    const auto activation = [&](std::size_t input, const policies::RolePolicy& policy,
                                const policies::LayerTensors& recorded,
                                const policies::StaticScales& known) {
      std::optional<policies::TensorScale> scale;
      if (policies::has_static_scale(calibration, policy)) {
        const auto found = known.find(gemm.name);
        scale = found != known.end() ? found->second
                                     : policies::static_scale(calibration, policy, reference,
                                                              net::at_layer(recorded, gemm.name));
      }
      auto operand = std::make_unique<Operand>(policy, scale ? scale->zero_point : 0);
      operand->scale = scale;
      operand->one_sample = one_sample;
      const int value = whole ? phase_origin(graph, gemm.node->inputs.at(input)) : -1;
      if (whole) operand->channels = channels_of(value);
      operand->name = fmt::format("{}/activation",
                                  whole ? graph.value_name(value) : std::string_view(gemm.name));
      operand->input = whole && value < static_cast<int>(graph.inputs.size());
      return operand;
    };
    if (roles[policies::RolePart::activation])
      layer.left =
          activation(0, *roles[policies::RolePart::activation], reference.inputs, static_scales);
    if (gemm.weight == nullptr) {
      const auto& right = roles.role(gemm.right, net::GemmKind::fprop);
      if (right) {
        layer.right = activation(1, *right, reference.seconds, {});
        layer.right->role = gemm.right;
      }
    } else if (roles[policies::RolePart::weight]) {
      layer.right = std::make_unique<Operand>(*roles[policies::RolePart::weight]);
      layer.right->role = net::Role::weight;
      layer.right->weight = gemm.weight;
      layer.right->name = gemm.name + "/weight";
      const net::Tensor& inputs = net::at_layer(reference.inputs, gemm.name);
      if (read) {
        net::Tensor changed = inputs;
        read(gemm.name, 0, changed);
        layer.right->input_sizes = input_sizes(changed, *gemm.weight);
      } else {
        layer.right->input_sizes = input_sizes(inputs, *gemm.weight);
      }
    }
    if (roles[policies::RolePart::output]) {
      const auto at = static_cast<std::size_t>(gemm.node - graph.nodes.data());
      layer.output = stored(*roles[policies::RolePart::output], graph.value_of(at));
      if (!whole) layer.output->name = gemm.name + "/output";
    }
    for (Operand* const operand : {layer.left.get(), layer.right.get()}) {
      if (operand != nullptr)
        operand->slices = policies::reads_slices(*roles.fprop, operand->quantizer.policy());
    }
  }
  for (const net::Node& node : graph.nodes) {
    const auto& vector = recipe.layer(node.name)[policies::RolePart::vector];
    if (vector)
      vectors_[node.name] =
          stored(*vector, graph.value_of(static_cast<std::size_t>(&node - graph.nodes.data())));
    if (net::table_of(node) == nullptr) continue;
    const std::optional<policies::RolePolicy>& policy =
        recipe.layer(node.name)[policies::RolePart::embedding];
    if (!policy || (policy->block != nullptr && policy->block->affine != Affine::sym)) continue;
    Operand& operand = tables_.try_emplace(node.name, *policy).first->second;
    operand.role = net::Role::embedding;
    operand.name = node.name + "/embedding";
  }
}

const InjectedRoles::Layer& InjectedRoles::layer(std::string_view name) const {
  return net::at_layer(layers_, name);
}

const InjectedRoles::Operand* InjectedRoles::table(std::string_view node) const {
  const auto found = tables_.find(node);
  return found == tables_.end() ? nullptr : &found->second;
}

const InjectedRoles::Operand* InjectedRoles::vector(std::string_view node) const {
  const auto found = vectors_.find(node);
  return found == vectors_.end() ? nullptr : found->second.get();
}

}  // namespace numemu::experiments
