// Scales that a recipe's `ranges` fix, as the text of a role's scale: kept where rules are named,
// so that whatever chooses the scales of that role finds them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/numerics/role_quantizer.hpp"

namespace numemu::policies {

/// One scale, or one per channel. No rule of a recipe has such a text (it has spaces).
std::string fixed_scales_text(const std::vector<float>& scales);
/// A scale with its zero point, for roles that have one.
std::string fixed_scale_text(const TensorScale&);

/// Whether the scale of a role is such a text.
bool has_fixed_scales(std::string_view scale);
/// Whether scales are kept beside the codes: fixed ones, and those of most rules.
bool stores_scale(const std::string& scale);
/// The scales; none for the name of a rule.
std::optional<std::vector<float>> fixed_scales(std::string_view scale);
/// The one scale of a tensor with its zero point, 0 without; none for the name of a rule.
std::optional<TensorScale> fixed_scale(std::string_view scale);

}  // namespace numemu::policies
