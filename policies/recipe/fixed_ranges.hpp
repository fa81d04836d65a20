// Ranges of tensors that a recipe fixes (key `ranges`): static scales are theirs instead of being
// chosen from the tensor or calibrated.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// From `low` to `high`; a role without zero point takes the larger magnitude as both ends.
struct ValueRange {
  float low = 0, high = 0;
  float magnitude() const;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// Of a layer that multiplies by a weight: the weight, in one range or one per index of axis 0, and
/// the activation. Empty and none: the recipe's rule chooses.
struct LayerRanges {
  std::vector<ValueRange> weight;
  std::optional<ValueRange> activation;
  bool empty() const { return weight.empty() && !activation; }
  friend bool operator==(const LayerRanges&, const LayerRanges&) = default;
};
/// By layer.
using FixedRanges = std::map<std::string, LayerRanges, std::less<>>;

/// {"conv1": {"weight": [[LOW, HIGH], ...], "activation": [LOW, HIGH]}}
Json ranges_json(const FixedRanges&);
/// Throws Error naming the key where a range is no pair of finite numbers in order.
FixedRanges read_ranges(const JsonReader&);

/// The recipe with these ranges in place of its own. `where` is its file: what it names is sought
/// beside that.
Recipe with_ranges(const Recipe&, const FixedRanges&, const std::string& where = "recipe");
/// Those of a recipe; none without the key.
FixedRanges ranges_of(const Recipe&);
/// First 16 hexadecimal digits of the SHA-256 of ranges_json(); "" for none.
std::string digest_of(const FixedRanges&);

/// The range that the codes of a format reach under a scale: with_ranges() gives that scale again,
/// or one an ulp beside it.
ValueRange range_of(const RolePolicy&, const TensorScale&);

/// Whether ranges can fix the scales of a weight with that role, or of an activation that has a
/// static scale: one for the tensor or one per channel, without blocks and history.
bool has_fixable_scales(const RolePolicy&);

/// Puts the scales of the ranges in the place of the rules of weight and activation, where these
/// have one scale for the tensor or one per channel. The scale of a range is that of its magnitude
/// under the role's rule (under a rule of least error: the one that reaches it), or that of both
/// ends with a zero point.
void fix_scales(const LayerRanges&, const CalibrationPolicy&, LayerRecipe&);

/// Layers whose activation has a scale that ranges fix.
std::int64_t fixed_activations(const BoundRecipe&);

/// One sentence for each cause: how many tensors have scales of the recipe's ranges,
/// and which ranges nothing uses because the role has no such scale.
std::vector<std::string> notes_on_ranges(const BoundRecipe&);

}  // namespace numemu::policies
