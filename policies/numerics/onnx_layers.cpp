#include "policies/numerics/onnx_layers.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "formats/blocks/block_convert.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {
namespace {

[[noreturn]] void refuse(const std::string& layer, const std::string& what,
                         const std::string& way_out = "") {
  throw Error(fmt::format("{}: {} cannot be exported{}{}", layer, what, way_out.empty() ? "" : "; ",
                          way_out));
}

[[noreturn]] void refuse_two_activations(const std::string& layer) {
  refuse(layer, "a quantized product of two activations, whose ranges a checkpoint does not store,",
         fmt::format("leave it in float32 by {{\"match\": \"{}\", \"roles\": {{\"activation\": "
                     "null}}}} in layers",
                     layer));
}

/// An exported network has its weights and the codes of its activations, and no other tensor in few
/// bits.
void require_no_other_roles(const std::string& layer, const LayerRecipe& r) {
  for (const RoleRow& row : role_table()) {
    const bool of_inference = row.stored ? !row.training : row.role == net::Role::output;
    if (of_inference && r[row.parts.front().part]) refuse(layer, "role " + row.name());
  }
}

void require_exportable(const std::string& layer, const LayerRecipe& r) {
  require_no_other_roles(layer, r);
  if (r.masks[RolePart::activation]) refuse(layer, "a mask of activations");
  if (r.zap) refuse(layer, "predicted zeros");
}

/// A weight in blocks or tiles, quantized as the frozen one was.
net::OnnxOperand blocks_of(const net::GemmLayer& layer, const RolePolicy& role,
                           const PlainOperand* frozen) {
  const BlockFormat& format = *role.block;
  const net::Tensor& x = *layer.weight;
  const bool tiles = role.granularity == Granularity::tile;
  const bool whole_line = role.axis == BlockAxis::reduction && !tiles;
  net::OnnxBlocks blocks{.format = &format,
                         .line = whole_line ? x.size() / x.dim(0) : x.shape.back(),
                         .size = format.size};
  if (role.rounding.stochastic() || format.affine == Affine::min || format.element->bits > 8)
    refuse(layer.name, "a weight in blocks of " + format.name);
  const RoleQuantizer quantizer(role);
  std::vector<std::uint8_t> codes(x.data.size());
  std::vector<float> values(x.data.size()), scales;
  if (tiles) {
    if (format.scale != &float32() || format.affine != Affine::sym)
      refuse(layer.name, "a weight in tiles of " + format.name);
    std::vector<float> of_tiles;
    quantize_tiles(quantizer, x, {}, codes, of_tiles);
    quantize_tiles(quantizer, x, {}, values);
    const WeightTiles t(x.shape, role.tile_rows(), format.size);
    blocks.rows = t.height;
    for (std::int64_t line = 0; line < x.size() / blocks.line; ++line) {
      const std::int64_t tap = line % t.taps, band = line / t.taps / t.height;
      for (std::int64_t b = 0; b < blocks.per_line(); ++b)
        scales.push_back(
            of_tiles[static_cast<std::size_t>((tap * t.bands() + band) * blocks.per_line() + b)]);
    }
  } else {
    const BlockLayout layout = block_layout(format, {x.size() / blocks.line, blocks.line}, 1);
    const auto bytes = static_cast<std::size_t>(container_bytes(*format.scale));
    const auto count = static_cast<std::size_t>(layout.blocks);
    blocks.scale_codes.resize(count * bytes);
    std::vector<std::uint8_t> zeros(format.affine == Affine::zp ? count : 0);
    quantizer.quantize(layout, x.data.data(), {},
                       {.codes = codes.data(),
                        .scales = blocks.scale_codes.data(),
                        .zero_points = zeros.empty() ? nullptr : zeros.data(),
                        .tensor_scale = &blocks.tensor_scale},
                       values.data());
    for (std::size_t b = 0; b < count; ++b) {
      StoredScale stored{.shift = zeros.empty() ? 0U : zeros[b]};
      std::memcpy(&stored.scale, blocks.scale_codes.data() + b * bytes, bytes);
      const BlockScale scale = block_scale(format, stored, blocks.tensor_scale);
      scales.push_back(static_cast<float>(to_double(scale.factor)));
      if (!zeros.empty()) blocks.zero_points.push_back(static_cast<std::int32_t>(scale.zero));
    }
  }
  // A mask or another policy above the role changed what is quantized.
  if (frozen != nullptr && frozen->dequantized && frozen->values != values)
    refuse(layer.name, "a weight in blocks under another policy");
  return {.format = format.element,
          .scales = std::move(scales),
          .codes = {codes.begin(), codes.end()},
          .blocks = std::move(blocks)};
}

net::OnnxOperand weight_of(const net::GemmLayer& of, const LayerRecipe& recipe,
                           const PlainOperand* operand) {
  const std::string& layer = of.name;
  const RolePolicy& role = *recipe[RolePart::weight];
  if (role.block != nullptr) {
    if (recipe.masks[RolePart::weight]) refuse(layer, "a masked weight in blocks");
    return blocks_of(of, role, operand);
  }
  const bool whole =
      role.granularity == Granularity::tensor || role.granularity == Granularity::channel;
  if (!whole || operand == nullptr) refuse(layer, "a weight with a scale for each row");
  const QuantizedTensor& codes = operand->codes;
  net::OnnxOperand out{.format = codes.format, .scales = codes.scales};
  if (codes.is_narrow()) {
    out.codes.assign(codes.narrow.begin(), codes.narrow.end());
  } else {
    out.codes = codes.wide;
  }
  return out;
}

net::OnnxOperand of_static_scale(const std::string& layer, const RolePolicy& role,
                                 const TensorScale& scale, const std::string& name) {
  if (role.rounding != Rounding{} || role.overflow != Overflow::saturate)
    refuse(layer, name + " with another rounding than rne or overflow than saturate");
  return {.format = role.format,
          .scales = {scale.scale},
          .zero_point = scale.zero_point,
          .shifted = role.zero_point};
}

/// An operand that is an activation, as messages name it.
net::OnnxOperand activation_of(const std::string& layer, const RolePolicy& role,
                               const StaticScales& scales, const std::string& name) {
  const auto found = scales.find(layer);
  const bool half = role.format->name == "float16" || role.format->name == "bfloat16";
  if (half && role.block == nullptr && role.scale == "none" && role.rounding == Rounding{} &&
      role.overflow == Overflow::saturate)
    return {.format = role.format, .scales = {}};
  const bool of_row = role.granularity == Granularity::row;
  const bool dynamic = found == scales.end() && role.scale == "absmax" && role.history == 0 &&
                       !role.zero_point && role.format->bits <= 8 &&
                       (of_row || role.granularity == Granularity::tensor);
  if (dynamic && role.rounding == Rounding{} && role.overflow == Overflow::saturate)
    return {.format = role.format,
            .scales = {},
            .scale_of = of_row ? net::OnnxScaleOf::row : net::OnnxScaleOf::sample};
  if (found == scales.end() && role.block != nullptr)
    refuse(layer,
           fmt::format("{} in blocks of {}, whose scales no operator of ONNX computes,", name,
                       role.block->name),
           "take --out FILE.safetensors, or one scale by an entry of layers");
  if (found == scales.end())
    refuse(layer, name + " without one calibrated scale (calibrate.rule, granularity)");
  return of_static_scale(layer, role, found->second, name);
}

}  // namespace

net::OnnxLayers onnx_layers(const RecipeNumerics& frozen, bool weights_suffice) {
  net::OnnxLayers out;
  const StaticScales scales = frozen.roles().static_scales(),
                     seconds = frozen.roles().second_scales();
  for (const auto& [layer, r] : frozen.bound().products()) {
    require_exportable(layer.name, r);
    const bool two = layer.weight == nullptr;
    if (weights_suffice && two &&
        (r[RolePart::activation] || r.role(layer.right, net::GemmKind::fprop)))
      refuse_two_activations(layer.name);
    net::OnnxLayer& entry = out[layer.name];
    // What no pass multiplies (the recurrent weight of a single step) stays float32.
    if (frozen.roles().operand_counts(layer.name, net::GemmKind::fprop).elements == 0) continue;
    if (r[RolePart::weight] && layer.weight != nullptr)
      entry.weight = weight_of(layer, r, frozen.roles().frozen_weight(layer.name));
    const bool chosen = !scales.contains(layer.name);
    if (r[RolePart::activation] && !(weights_suffice && chosen && layer.weight != nullptr))
      entry.activation =
          activation_of(layer.name, *r[RolePart::activation], scales, "an activation");
    if (!two) continue;
    const std::optional<RolePolicy>& second = r.role(layer.right, net::GemmKind::fprop);
    if (second) {
      const std::string name = fmt::format("role {} as right operand", net::to_string(layer.right));
      // Its rows may be columns in a file.
      if (second->granularity == Granularity::row)
        refuse(layer.name, name + " without one calibrated scale");
      entry.second = activation_of(layer.name, *second, seconds, name);
    }
  }
  if (weights_suffice) return out;
  for (const auto& [layer, rounded] : frozen.rounded_results()) {
    if (rounded.from_sums)
      refuse(layer, "codes from int32 sums (edges.requantize)",
             "the operators of ONNX have float32 between: take \"requantize\": \"none\"");
    out[layer].result = of_static_scale(layer, rounded.role, rounded.scale, "a result");
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
    if (found->second.activation || found->second.second) refuse_two_activations(layer.name);
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
