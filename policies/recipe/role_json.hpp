// One role of a recipe: read strictly, every default written out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "formats/storage/json_reader.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/recipe/role_table.hpp"

namespace numemu::policies {

/// The keys of a role in JSON.
const std::vector<std::string>& quantization_keys();

/// Throws Error that shows an object where the value is none.
void require_role_object(const JsonReader& role);
/// null, {"format": null}, {"format": "float32"} and {"mask": ...} alone all mean: not quantized.
/// Unknown keys are refused.
bool stays_float32(const JsonReader& role);
/// A quantized role. Throws Error naming the key and what was expected.
RolePolicy read_role(const JsonReader& role, const RoleRow&);
/// The canonical form, without the mask; read_role() gives the same policy back.
/// It has "block" for an element format in blocks, and "ste" unless it is identity.
Json role_json(const RolePolicy&);
/// A patch of a role with canonical names, its other values as they are. For patches that have been
/// checked.
Json with_canonical_names(Json role_patch);
/// The patch laid over a canonical role, key by key. Where it goes from an element format to a
/// block format or back, the scale, granularity and axis that it leaves out are the new format's
/// defaults.
void patch_role(Json& role, const Json& patch);

}  // namespace numemu::policies
