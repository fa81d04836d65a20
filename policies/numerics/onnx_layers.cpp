// Cold: a negligible share of any run (docs/build.md).
#include "policies/numerics/onnx_layers.hpp"

#include <fmt/format.h>

#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

[[noreturn]] void refuse(const std::string& layer, const std::string& what) {
  throw Error(fmt::format("{}: {} cannot be exported", layer, what));
}

void require_no_other_roles(const std::string& layer, const LayerRecipe& r) {
  const std::pair<const char*, const std::optional<RolePolicy>*> roles[] = {
      {"vector", &r[RolePart::vector]},
      {"output", &r[RolePart::output]},
      {"embedding", &r[RolePart::embedding]}};
  for (const auto& [name, role] : roles) {
    if (*role) refuse(layer, fmt::format("role {}", name));
  }
}

void require_exportable(const std::string& layer, const LayerRecipe& r) {
  require_no_other_roles(layer, r);
  if (r.masks[RolePart::activation]) refuse(layer, "a mask of activations");
  if (r.zap) refuse(layer, "predicted zeros");
}

net::OnnxOperand weight_of(const std::string& layer, const RolePolicy& role,
                           const PlainOperand* operand) {
  const bool whole =
      role.granularity == Granularity::tensor || role.granularity == Granularity::channel;
  if (!whole || operand == nullptr)
    refuse(layer, "a weight with other scales than one, or one for each channel,");
  const QuantizedTensor& codes = operand->codes;
  net::OnnxOperand out{.format = codes.format, .scales = codes.scales};
  if (codes.is_narrow()) {
    out.codes.assign(codes.narrow.begin(), codes.narrow.end());
  } else {
    out.codes = codes.wide;
  }
  return out;
}

/// An operand that is an activation, as messages name it.
net::OnnxOperand activation_of(const std::string& layer, const RolePolicy& role,
                               const StaticScales& scales, const std::string& name) {
  const auto found = scales.find(layer);
  if (found == scales.end())
    refuse(layer, name + " without one calibrated scale (calibrate.rule, granularity)");
  if (role.rounding != Rounding{} || role.overflow != Overflow::saturate)
    refuse(layer, name + " with another rounding than rne or overflow than saturate");
  return {.format = role.format,
          .scales = {found->second.scale},
          .zero_point = found->second.zero_point,
          .shifted = role.zero_point};
}

}  // namespace

net::OnnxLayers onnx_layers(const RecipeNumerics& frozen) {
  net::OnnxLayers out;
  const StaticScales scales = frozen.static_scales(), seconds = frozen.second_scales();
  for (const auto& [layer, r] : frozen.bound().products()) {
    require_exportable(layer.name, r);
    net::OnnxLayer& entry = out[layer.name];
    // What no pass multiplies (the recurrent weight of a single step) stays float32.
    if (frozen.operand_counts(layer.name, net::GemmKind::fprop).elements == 0) continue;
    if (r[RolePart::weight] && layer.weight != nullptr)
      entry.weight = weight_of(layer.name, *r[RolePart::weight], frozen.frozen_weight(layer.name));
    if (r[RolePart::activation])
      entry.activation =
          activation_of(layer.name, *r[RolePart::activation], scales, "an activation");
    if (layer.weight != nullptr) continue;
    const std::optional<RolePolicy>& second = r.role(layer.right, net::GemmKind::fprop);
    if (second)
      entry.second =
          activation_of(layer.name, *second, seconds,
                        fmt::format("role {} as right operand", net::to_string(layer.right)));
  }
  return out;
}

void require_untransformed(const BoundRecipe& recipe) {
  for (const BoundProduct& product : recipe.products()) {
    if (recipe.chooses_for_inference("transform", product.gemm.name))
      refuse(product.gemm.name, "a transform of operands (transform)");
  }
}

void require_coded_layers(const net::OnnxLayers& layers, const net::Graph& graph) {
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto found = layers.find(layer.name);
    if (layer.weight != nullptr || found == layers.end()) continue;
    if (found->second.activation || found->second.second)
      refuse(layer.name,
             "a quantized product of two activations, whose ranges a checkpoint does not store,");
  }
}

void require_onnx_operators(const BoundRecipe& recipe) {
  for (const net::Node& node : recipe.graph().nodes) {
    if (node.op->kind() == "batch_norm" && recipe.chooses_for_inference("norm", node.name))
      refuse(node.name, "batch normalisation by shifts (norm)");
    // These roles act on operators without a product, too.
    require_no_other_roles(node.name, recipe.layer(node.name));
    if (net::table_of(node) != nullptr && recipe.chooses_for_inference("table", node.name))
      refuse(node.name, "a quantized table (table)");
  }
}

}  // namespace numemu::policies
