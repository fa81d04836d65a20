// What a recipe makes of the operands of products, for formats that store codes and scales.
#pragma once
#include <string>

#include "emu/net/model/onnx/export.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::policies {

/// The frozen weights and static activation scales of every layer, of both operands where neither
/// is a weight, of numerics that have run a sample (which quantizes weights). Throws Error naming
/// layer and cause for what such files cannot say: scales of rows, of blocks and samples of
/// activations, masks of activations, roundings of activations other than rne, and roles of other
/// tensors than operands. With `weights_suffice` activations whose scales are those of each tensor
/// have no entry: what reads the file has the recipe.
net::OnnxLayers onnx_layers(const RecipeNumerics& frozen, bool weights_suffice = false);

/// Throws Error naming the layer whose operands a transform changes (key transform): codes would be
/// those of a weight that no reader turns back.
void require_untransformed(const BoundRecipe&);

/// Throws Error naming the layer whose product of two activations is quantized: a safetensors file
/// has ranges of layers with weights alone.
void require_coded_layers(const net::OnnxLayers&, const net::Graph&);

/// Throws Error naming layer and cause where a layer computes what an ONNX file cannot say: batch
/// normalisation whose rule (key norm) acts in inference, a quantized table (key table), and the
/// roles vector, output and embedding of any operator.
void require_onnx_operators(const BoundRecipe&);

}  // namespace numemu::policies
