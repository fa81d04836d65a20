// The roles of a recipe: all of them, a gradient whole or split by the product that reads it, the
// optimizer's state whole or split by moment.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Every role of the schema.
std::vector<std::string> role_names();
/// All roles, null where the role stays float32. Throws Error naming the key.
Json canonical_roles(const JsonReader& roles);
/// Canonical roles as the typed view's.
void read_roles(const Json& canonical, LayerRecipe&);

/// A patch of {"weight": ...} laid over canonical roles; not yet checked. A quantized role is
/// patched key by key; null, a float32 role and a gradient that is split otherwise are replaced.
Json patched_roles(Json roles, const JsonReader& patch);
/// The same patch with canonical names, after it has been checked.
Json canonical_role_patches(const Json& patch);

}  // namespace numemu::policies
