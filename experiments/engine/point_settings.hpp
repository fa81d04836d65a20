// What one point of a sweep changes in the base recipe: dotted paths and their values.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace numemu::experiments {

/// Dotted path into the recipe -> value. `*` stands for every key of an object.
using PointSettings = std::vector<std::pair<std::string, nlohmann::ordered_json>>;

/// Applies them to a canonical recipe, in their order; but the format of a role before its other
/// keys: a change between an element format and a block format takes the new format's scale,
/// granularity and axis (policies::patch_role), and a scale that was the old format's default
/// becomes the new one's. Throws Error naming the path.
void apply_settings(nlohmann::ordered_json& recipe, PointSettings settings,
                    const std::string& where);

}  // namespace numemu::experiments
