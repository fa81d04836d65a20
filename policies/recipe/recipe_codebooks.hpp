// The contents of the codebooks that a recipe names: a part of its identity, as files change.
#pragma once
#include "formats/storage/json.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::policies {

/// By format name ("codebook(FILE)"), the SHA-256 of the entries of every codebook in a canonical
/// recipe; null without any. Throws Error where `given`, the recipe's key, has another digest.
Json codebooks_of(const Json& recipe, const JsonReader& given);

}  // namespace numemu::policies
