// The roles and units of a recipe: read strictly, every default written out.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Every role of the schema, quantized or not.
std::vector<std::string> role_names();
/// The GEMMs of a layer.
inline const std::vector<std::string> kGemms = {"fprop", "dgrad", "wgrad"};

/// A quantized role. Throws Error naming the key.
RolePolicy read_role(const JsonReader& role);
/// All roles, null where the role stays float32; a role that no policy quantizes is refused by
/// name.
Json canonical_roles(const JsonReader& roles);
Json canonical_gemms(const JsonReader& gemms);
/// Throws Error unless every operand format of {"roles", "gemms"} is one its unit takes.
void require_units_take(const Json& layer, const JsonReader& where);

}  // namespace numemu::policies
