// The checkpoint of a tuned network: its weights, and the ranges that inference uses instead of
// calibrating.
#pragma once
#include <string>
#include <vector>

#include "emu/net/model/onnx/export.hpp"
#include "emu/net/model/safetensors.hpp"
#include "policies/recipe/fixed_ranges.hpp"

namespace numemu::policies {

/// The ranges that codes reach under their scales, by the roles of a recipe without ranges.
FixedRanges ranges_of_codes(const Recipe&, const net::OnnxLayers&);

/// Throws Error naming the tensor or the metadata where formats, scales and zero points of a file
/// of codes (emu/net/model/coded_weights.hpp) are not those of `ranges` under the recipe in its
/// metadata. Nothing happens to other files.
void require_ranges_of_codes(const std::string& path, const FixedRanges& ranges);

/// Adds ranges to the metadata.
void add_ranges(net::Checkpoint&, const FixedRanges&);
/// Those of a .safetensors file; none for any other file, and without the metadata. Throws Error
/// naming the file where they are damaged, or are not those of the scales that the file also has.
FixedRanges checkpoint_ranges(const std::string& path);

/// A recipe for the network of a checkpoint: with its ranges, unless the recipe has some itself.
/// `where` is the recipe's file.
Recipe with_checkpoint_ranges(const Recipe&, const std::string& path, const std::string& where);

/// Whether a file was trained under a recipe and has no network from before that.
bool trained_without_before(const std::string& path);

/// What accuracy is compared with, and what SQNR is, where `before`, the network has one from
/// before tuning or training under a recipe; also where a file was trained so and has none.
std::vector<std::string> notes_on_baseline(const std::string& path, bool before);

}  // namespace numemu::policies
