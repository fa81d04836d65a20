// Ranges of a file of codes and scales: derived from the scales, so that both say the same.
#pragma once
#include <string>

#include "emu/net/model/onnx_export.hpp"
#include "policies/recipe/fixed_ranges.hpp"

namespace numemu::policies {

/// The ranges that codes reach under their scales, by the roles of a recipe without ranges.
FixedRanges ranges_of_codes(const Recipe&, const net::OnnxLayers&);

/// Throws Error naming the tensor or the metadata where formats, scales and zero points of a file
/// of codes (emu/net/model/coded_weights.hpp) are not those of `ranges` under the recipe in its
/// metadata. Nothing happens to other files.
void require_ranges_of_codes(const std::string& path, const FixedRanges& ranges);

}  // namespace numemu::policies
