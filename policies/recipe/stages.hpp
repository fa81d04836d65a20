// The key `stages` of a recipe: when each entry begins, and its patch (JSON merge patch, RFC 7386).
#pragma once
#include <vector>

#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// {"epoch": N}, later than the epochs of earlier entries, {"plateau": X} or {"turning_point": X}.
/// Throws Error naming the key.
StageStart read_start(const JsonReader& from, const std::vector<StageStart>& earlier);
Json start_json(const StageStart&);

/// Throws Error naming a key that no stage may change, and one that the patch removes though
/// neither the recipe before it, as given and in canonical form, has it.
void require_stage_patch(const JsonReader& patch, const Json& given, const Json& canonical);

/// RFC 7386: members of objects are replaced one by one, null removes, all else is replaced whole.
Json merged_patch(Json target, const Json& patch);
/// The smallest patch that leads from one to the other, where null and an absent member are the
/// same.
Json patch_between(const Json& from, const Json& to);

}  // namespace numemu::policies
