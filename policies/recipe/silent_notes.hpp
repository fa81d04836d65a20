// Effects of a recipe that none of its keys shows, as sentences for readers of results.
#pragma once
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::policies {

/// Of a recipe in inference: that it is the last one of a recipe with stages (`stage` > 0), and its
/// keys that act in training alone.
std::vector<std::string> notes_on_training(const Recipe&, std::size_t stage);

/// Where weights are quantized: the tables (trained parameters of two axes or more) that no product
/// reads as its weight, which stay float32, with their share of the parameters.
std::vector<std::string> notes_on_tables(const Recipe&, const net::Graph&);

/// Of a network with quantizers of its own (QuantizeLinear followed by DequantizeLinear), or of an
/// .onnx file at `path` that has weights as codes: how many, and that float32 contains them.
std::vector<std::string> notes_on_quantizers(const net::Graph&, const std::string& path);

/// Layers whose forward products, since the counts were reset, had NaN among their operands in a
/// signed format that has none and makes its largest number of them.
std::vector<std::string> notes_on_nan(const RecipeNumerics&, const net::Graph&);

}  // namespace numemu::policies
