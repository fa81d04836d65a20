// The layers entries of a recipe: patches laid over the base, later ones winning.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "formats/storage/json_reader.hpp"

namespace numemu::policies {

/// {"roles", "gemms"} of `base` with the entry's patch laid over, canonical. A quantized role is
/// patched key by key; null, a float32 role and a gradient that is split otherwise are replaced.
Json merged_layer(const Json& base, const JsonReader& entry);
/// The entries with canonical names, each checked against the base.
Json canonical_layers(const Json& base, const JsonReader& layers);

}  // namespace numemu::policies
