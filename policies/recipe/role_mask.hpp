// The mask of a role, and the rules that each role allows.
#pragma once
#include <optional>
#include <string_view>

#include "formats/storage/json_reader.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/zap/zap_mask.hpp"

namespace numemu::policies {

/// The role's key "mask"; nothing where it is null or absent. Weights take rules of groups, tiles
/// and tensors whose draws do not change from step to step; activations and gradients take rules
/// of groups and single elements. Throws Error naming the key.
std::optional<MaskPolicy> read_mask(const JsonReader& role, std::string_view role_name);
/// The predictors of the role vector, nothing for any other mask. Throws Error naming the key.
std::optional<ZapMask> read_zap(const JsonReader& role, std::string_view role_name);

}  // namespace numemu::policies
