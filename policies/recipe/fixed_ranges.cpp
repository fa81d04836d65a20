#include "policies/recipe/fixed_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/codec.hpp"
#include "formats/digest.hpp"
#include "formats/joined.hpp"
#include "policies/canonical_json.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {
namespace {

constexpr std::string_view kKey = "ranges";

Json range_json(const ValueRange& range) { return {double{range.low}, double{range.high}}; }

ValueRange read_range(const JsonReader& given) {
  const Json& value = given.value();
  if (value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number()) {
    const ValueRange range{value[0].get<float>(), value[1].get<float>()};
    if (std::isfinite(range.low) && std::isfinite(range.high) && range.low <= range.high)
      return range;
  }
  given.fail("[LOW, HIGH], two finite float32 numbers in order");
}

/// The scale of a magnitude that the codes must reach.
float scale_of(const RoleQuantizer& quantizer, float magnitude) {
  if (quantizer.policy().scale.starts_with("mse"))
    return absmax_scale(magnitude, quantizer.conversion());
  return quantizer.scale_of_magnitude(magnitude);
}

bool takes_ranges(const std::optional<RolePolicy>& role) {
  return role && has_fixable_scales(*role);
}

bool takes_range(const std::optional<RolePolicy>& activation,
                 const CalibrationPolicy& calibration) {
  return takes_ranges(activation) && has_static_scale(calibration, *activation);
}

ValueRange hull(const std::vector<ValueRange>& ranges) {
  ValueRange all = ranges.front();
  for (const ValueRange& range : ranges)
    all = {std::min(all.low, range.low), std::max(all.high, range.high)};
  return all;
}

bool is_fixed(const std::optional<RolePolicy>& role) { return role && role->fixed; }

/// "1 tensor", "2 tensors"
std::string tensors(std::int64_t n) { return fmt::format("{} tensor{}", n, n == 1 ? "" : "s"); }

}  // namespace

float ValueRange::magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }

Json ranges_json(const FixedRanges& ranges) {
  Json json = Json::object();
  for (const auto& [layer, of] : ranges) {
    Json& entry = json[layer] = Json::object();
    for (const ValueRange& range : of.weight) entry["weight"].push_back(range_json(range));
    if (of.activation) entry["activation"] = range_json(*of.activation);
  }
  return json;
}

FixedRanges read_ranges(const JsonReader& given) {
  FixedRanges ranges;
  if (given.is_null()) return ranges;
  if (!given.value().is_object()) given.fail("an object of layers");
  for (const auto& item : given.value().items()) {
    const JsonReader entry = given.member(item.key());
    entry.require_keys({"weight", "activation"});
    LayerRanges& of = ranges[item.key()];
    const JsonReader weight = entry.member("weight");
    if (!weight.is_null()) {
      if (!weight.value().is_array() || weight.value().empty())
        weight.fail("[[LOW, HIGH], ...], one range or one per channel");
      for (std::size_t i = 0; i < weight.value().size(); ++i)
        of.weight.push_back(read_range(weight.element(i)));
    }
    if (entry.has("activation") && !entry.member("activation").is_null())
      of.activation = read_range(entry.member("activation"));
  }
  return ranges;
}

Recipe with_ranges(const Recipe& recipe, const FixedRanges& ranges, const std::string& where) {
  Json json = recipe.json();
  json.erase(std::string(kKey));
  if (!ranges.empty()) json[kKey] = ranges_json(ranges);
  return Recipe::parse(json, where);
}

FixedRanges ranges_of(const Recipe& recipe) {
  return read_ranges(JsonReader(recipe.json(), "recipe").member(std::string(kKey)));
}

std::string digest_of(const FixedRanges& ranges) {
  return ranges.empty() ? "" : sha256_hex(canonical_json(ranges_json(ranges))).substr(0, 16);
}

ValueRange range_of(const RolePolicy& role, const TensorScale& scale) {
  const RoleQuantizer quantizer(role);
  if (role.zero_point) {
    const float* const values = decode_table(*role.format);
    const std::size_t codes = std::size_t{1} << role.format->bits;
    const auto [low, high] = std::minmax_element(values, values + codes);
    const auto zero = static_cast<float>(scale.zero_point);
    return {(*low - zero) * scale.scale, (*high - zero) * scale.scale};
  }
  const auto end = static_cast<float>(scale.scale * largest_element(quantizer.conversion()));
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const float high : {end, std::nextafter(end, 0.0f), std::nextafter(end, kMost)}) {
    if (scale_of(quantizer, high) == scale.scale)
      return {role.format->is_signed ? -high : 0.0f, high};
  }
  return {role.format->is_signed ? -end : 0.0f, end};
}

bool has_fixable_scales(const RolePolicy& role) {
  return role.block == nullptr && role.history == 0 && role.scale != "none" &&
         (role.granularity == Granularity::tensor || role.granularity == Granularity::channel);
}

void fix_scales(const LayerRanges& ranges, const CalibrationPolicy& calibration,
                LayerRecipe& layer) {
  if (!ranges.weight.empty() && takes_ranges(layer[RolePart::weight])) {
    const RoleQuantizer quantizer(*layer[RolePart::weight]);
    FixedScales scales;
    if (layer[RolePart::weight]->granularity == Granularity::tensor) {
      scales.push_back({scale_of(quantizer, hull(ranges.weight).magnitude())});
    } else {
      for (const ValueRange& range : ranges.weight)
        scales.push_back({scale_of(quantizer, range.magnitude())});
    }
    layer[RolePart::weight]->fix(std::move(scales));
  }
  if (ranges.activation && takes_range(layer[RolePart::activation], calibration)) {
    const RoleQuantizer quantizer(*layer[RolePart::activation]);
    const ValueRange& range = *ranges.activation;
    layer[RolePart::activation]->fix({layer[RolePart::activation]->zero_point
                                          ? quantizer.scale_of_range(range.low, range.high)
                                          : TensorScale{scale_of(quantizer, range.magnitude())}});
  }
}

std::int64_t fixed_activations(const BoundRecipe& recipe) {
  return std::ranges::count_if(recipe.products(), [](const BoundProduct& product) {
    return is_fixed(product.roles[RolePart::activation]);
  });
}

std::vector<std::string> notes_on_ranges(const BoundRecipe& recipe) {
  const FixedRanges ranges = ranges_of(recipe.recipe());
  std::int64_t weights = 0, activations = 0;
  std::vector<std::string> unused;
  for (const auto& [layer, of] : ranges) {
    const LayerRecipe& used = recipe.layer(layer);
    weights += is_fixed(used[RolePart::weight]);
    activations += is_fixed(used[RolePart::activation]);
    if (!of.weight.empty() && used[RolePart::weight] && !is_fixed(used[RolePart::weight]))
      unused.push_back("weight of " + layer);
    if (of.activation && used[RolePart::activation] && !is_fixed(used[RolePart::activation]))
      unused.push_back("activation of " + layer);
  }
  std::vector<std::string> notes;
  if (weights + activations > 0) {
    notes.push_back(fmt::format("the ranges are fixed of {}: weights of {}, activations of {}",
                                tensors(weights + activations), weights, activations));
  }
  if (!unused.empty()) {
    notes.push_back(
        fmt::format("the recipe has no use for the fixed ranges of {} (no static scale): {}",
                    tensors(static_cast<std::int64_t>(unused.size())), joined(unused, ", ")));
  }
  return notes;
}

}  // namespace numemu::policies
