// The roles of a recipe: all of them, a gradient whole or split by the product that reads it, the
// optimizer's state whole or split by moment.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/storage/json_reader.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/zap/zap_mask.hpp"

namespace numemu::policies {

/// All roles, null where the role stays float32. Throws Error naming the key.
Json canonical_roles(const JsonReader& roles);
/// Canonical roles as the typed view's.
void read_roles(const Json& canonical, LayerRecipe&);

/// A patch of {"weight": ...} laid over canonical roles; not yet checked. A quantized role is
/// patched key by key; null, a float32 role and a gradient that is split otherwise are replaced.
Json patched_roles(Json roles, const JsonReader& patch);
/// The patch with canonical names, after it has been checked.
Json canonical_role_patches(const Json& patch);

/// The role's key "mask"; nothing where it is null or absent. Weights take rules of groups, tiles
/// and tensors whose draws do not change from step to step; activations and gradients take rules
/// of groups and single elements. Throws Error naming the key.
std::optional<MaskPolicy> read_mask(const JsonReader& role, std::string_view role_name);
/// The predictors of the role vector, nothing for any other mask. Throws Error naming the key.
std::optional<ZapMask> read_zap(const JsonReader& role, std::string_view role_name);

}  // namespace numemu::policies
