#include "policies/recipe/role_mask.hpp"

#include <fmt/format.h>

#include "policies/recipe/error_at.hpp"

namespace numemu::policies {
namespace {

void require_weight(const JsonReader& key, const MaskPolicy& mask) {
  if (mask.axis == MaskAxis::batch) key.fail("axis=channel or axis=reduction for a weight");
  if (mask.rule->threshold != nullptr)
    key.fail("a rule of groups, tiles or a share for a weight, not a threshold");
  if (mask.rule->unbiased)
    key.fail("a rule that does not rescale weights: an unbiased estimate needs repeated draws");
  if (mask.rule->span == MaskSpan::tile && mask.axis != MaskAxis::channel)
    key.fail("axis=channel for tiles, which lie across both axes");
}

void require_moving(const JsonReader& key, std::string_view role, const MaskPolicy& mask) {
  const MaskPolicy defaults;
  if (mask.rule->span == MaskSpan::tile)
    key.fail(
        fmt::format("a rule of groups or single elements: tiles are those of weights, not of "
                    "the {}",
                    role));
  if (mask.axis == MaskAxis::reduction)
    key.fail(
        fmt::format("axis=channel{} for the {}: along the flattened depth an element has "
                    "several masks",
                    role == "gradient" ? " or axis=batch" : "", role));
  if (mask.axis == MaskAxis::batch && role != "gradient")
    key.fail("axis=channel: groups along the batch are those of gradients");
  if (mask.repair != defaults.repair || mask.refresh != defaults.refresh)
    key.fail(
        fmt::format("no repair and no refresh: they are those of weights, not of the {}", role));
  if (role != "gradient" && (mask.propagated || mask.history != 0))
    key.fail("no history and no at=input: they are those of gradients");
}

}  // namespace

std::optional<MaskPolicy> read_mask(const JsonReader& role, std::string_view role_name) {
  if (role.is_null()) return std::nullopt;
  const JsonReader key = role.member("mask");
  if (key.is_null()) return std::nullopt;
  if (!key.value().is_string())
    key.fail("a text such as \"greedy(2:4)\", or null, which keeps every element");
  const MaskPolicy mask = at(key, [&] { return parse_mask(key.text("")); });
  if (role_name == "weight") {
    require_weight(key, mask);
  } else if (role_name == "activation" || role_name == "gradient") {
    require_moving(key, role_name, mask);
  } else {
    key.fail(role_name == "vector"
                 ? "zap(FILE) or null: other masks are those of weight, activation and gradient"
                 : "null: masks are those of weight, activation and gradient");
  }
  return mask;
}

std::optional<ZapMask> read_zap(const JsonReader& role, std::string_view role_name) {
  if (role_name != "vector" || role.is_null()) return std::nullopt;
  const JsonReader key = role.member("mask");
  if (!key.value().is_string() || !is_zap_mask(key.text(""))) return std::nullopt;
  return at(key, [&] { return parse_zap_mask(key.text("")); });
}

}  // namespace numemu::policies
