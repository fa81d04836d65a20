// The settings of one point of a sweep: dotted paths into the base recipe and their values.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// Dotted path into the recipe -> value. `*` stands for every key of an object.
using PointSettings = std::vector<std::pair<std::string, Json>>;

/// Applies them to a canonical recipe, in their order; but the format of a role before its other
/// keys: a change between an element format and a block format takes the new format's scale,
/// granularity and axis (policies::patch_role), and a scale that was the old format's default
/// becomes the new one's. Throws Error naming the path.
void apply_settings(Json& recipe, PointSettings settings, const std::string& where);

}  // namespace numemu::experiments
