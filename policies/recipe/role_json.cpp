#include "policies/recipe/role_json.hpp"

#include <fmt/format.h>

#include "formats/call_text.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/suggest.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/zap/zap_mask.hpp"

namespace numemu::policies {
namespace {

constexpr int kWidestExponent = 8;
constexpr int kWidestOperand = 16;  // stored bits of a quantized role
constexpr int kWidestByte = 8;      // bits of formats that are scaled in every role
constexpr std::int64_t kDefaultBlock = 32;
constexpr std::int64_t kLargestTile = 32768;  // on a side
constexpr std::int64_t kLongestHistory = 65536;
constexpr std::size_t kLongestExample = 40;

const std::vector<std::string> kRoleKeys = {"format",      "rounding",  "overflow", "scale",
                                            "granularity", "block",     "axis",     "mask",
                                            "ste",         "zero_point"};
// In the order of the enumerators.
const std::vector<std::string> kGranularities = {"tensor", "channel", "row", "block", "tile"};
const std::vector<std::string> kAxes = {"channel", "reduction"};
const std::vector<std::string> kStraightThrough = {"identity", "clipped"};
const std::vector<std::string> kZeroPoints = {"none", "calibrated"};

template <class Enumeration>
Enumeration enumerated(const JsonReader& key, const std::vector<std::string>& names,
                       std::string_view kind) {
  const std::string name = key.one_of(names[0], names, kind);
  return static_cast<Enumeration>(std::find(names.begin(), names.end(), name) - names.begin());
}
template <class Enumeration>
const std::string& name_of(Enumeration value, const std::vector<std::string>& names) {
  return names[static_cast<std::size_t>(value)];
}

/// An element format by name; a text that is nearer to a block format's name is refused as one.
const Format& element_format(const std::string& text) {
  try {
    return find_format(text);
  } catch (const Error&) {
    std::vector<std::string> known, blocks;
    for (const Format* format : named_formats()) known.push_back(format->name);
    for (const BlockFormat* block : named_block_formats()) blocks.push_back(block->name);
    known.insert(known.end(), blocks.begin(), blocks.end());
    const std::optional<std::string> meant = suggested_name(text, known);
    if (meant && std::find(blocks.begin(), blocks.end(), *meant) != blocks.end())
      find_block_format(text);
    throw;
  }
}

void require_element(const JsonReader& key, const Format& format, const RoleRow& schema) {
  if (format.bits > kWidestOperand) {
    key.fail(fmt::format("a format of at most {} bits, not {} (null is float32, not quantized)",
                         kWidestOperand, format.name));
  }
  if (format.exponent_bits > kWidestExponent) {
    key.fail(fmt::format("a format of at most {} exponent bits, as float32 has, not {}",
                         kWidestExponent, format.name));
  }
  // Signs of weights and activations are those of binarized networks, whose products pad nothing.
  const bool sign = format.kind == Kind::sign &&
                    (schema.role == net::Role::weight || schema.role == net::Role::activation);
  if (!format.has_zero() && !sign) key.fail("a format with a zero, not " + format.name);
}

void read_granularity(const JsonReader& role, const RoleRow& schema, RolePolicy& policy) {
  const JsonReader key = role.member("granularity"), size = role.member("block");
  const bool tile = key.value() == "tile";
  if (tile && schema.role != net::Role::weight)
    key.fail("another value: tiles of outputs and inputs are those of weights");
  if (policy.block != nullptr) {
    if (!key.is_null() && key.value() != "block" && !tile)
      key.fail(fmt::format("'block', which {} implies", policy.block->name));
    if (!size.is_null()) size.fail(fmt::format("no size: {} has its own", policy.block->name));
    policy.granularity = tile ? Granularity::tile : Granularity::block;
    const Span span = policy.block->span;
    if (!tile && span == Span::tile)
      key.fail(fmt::format("'tile', which {} implies", policy.block->name));
    if (tile &&
        ((span != Span::block && span != Span::tile) || policy.block->affine != Affine::sym ||
         policy.block->size > kLargestTile || policy.block->rows > kLargestTile))
      key.fail(fmt::format("'block' for {}: tiles have one scale and at most {} neighbours",
                           policy.block->name, kLargestTile));
    return;
  }
  policy.granularity = enumerated<Granularity>(key, kGranularities, "granularity");
  if (policy.granularity == Granularity::channel && !schema.channel) {
    key.fail(schema.operand ? "'tensor', 'row' or 'block': a scale per channel of this role runs "
                              "along the reduction axis and cannot be applied after the unit"
                            : "'tensor', 'row' or 'block': channels are those of weights");
  }
  if (policy.granularity == Granularity::row && !schema.row)
    key.fail("'tensor', 'channel' or 'block': rows are those of activations and gradients");
  if (tile && size.value().is_array()) {
    if (size.value().size() != 2) size.fail("rows and columns of a tile, as [128, 128]");
    const std::int64_t rows = size.element(0).integer(0, 1, kLargestTile);
    const std::int64_t columns = size.element(1).integer(0, 1, kLargestTile);
    policy.block = at(role.member("format"), [&] {
      return rows == columns ? &scaled_format(*policy.format, Span::block, columns)
                             : &scaled_format(*policy.format, Span::tile, columns, rows);
    });
  } else if (policy.granularity == Granularity::block || tile) {
    const std::int64_t elements =
        size.integer(kDefaultBlock, 1, tile ? kLargestTile : kLargestBlock);
    policy.block = at(role.member("format"),
                      [&] { return &scaled_format(*policy.format, Span::block, elements); });
  } else if (!size.is_null()) {
    size.fail("no size unless granularity is block or tile");
  }
}

std::string default_rule(const RolePolicy& policy, const RoleRow& schema) {
  if (policy.block != nullptr) return policy.block->default_rule;
  const bool wide = policy.format->kind == Kind::floating && policy.format->bits > kWidestByte;
  return schema.operand || !wide ? "absmax" : "none";
}

/// "delayed(N)", "delayed(N,RULE)"
void read_delayed(const CallText& call, const JsonReader& key, const RoleRow& schema,
                  RolePolicy& policy) {
  const std::size_t count = call.arguments.size();
  const auto steps = count == 1 || count == 2
                         ? whole_argument(call.arguments[0], 1, kLongestHistory)
                         : std::nullopt;
  if (!steps) {
    key.fail(fmt::format("delayed(N) or delayed(N,RULE) with a number of steps N from 1 to {}",
                         kLongestHistory));
  }
  if (policy.granularity != Granularity::tensor || !schema.operand) {
    key.fail(
        "a rule without history: delayed scales are one per tensor of a weight, an activation or "
        "a gradient");
  }
  policy.history = *steps;
  policy.scale = count == 2 ? scale_rule_name(call.arguments[1]) : "absmax";
  if (!at(key, [&] { return find_scale_rule(policy.scale).stores_scale; }))
    key.fail("a rule with a scale, for delayed scaling, not " + policy.scale);
}

void read_scale(const JsonReader& role, const RoleRow& schema, RolePolicy& policy) {
  const JsonReader key = role.member("scale");
  const std::string text = key.text(default_rule(policy, schema));
  const CallText call = parse_call(text);
  if (call.name == "delayed") {
    read_delayed(call, key, schema, policy);
  } else {
    policy.scale = at(key, [&] {
      return std::string(
          (policy.block ? find_scale_rule(text, *policy.block) : find_scale_rule(text)).name);
    });
  }
  if (policy.block == nullptr && find_scale_rule(policy.scale).fills_range &&
      largest_value(*policy.format) > kWidestFilled) {
    key.fail(fmt::format(
        "scale rule none for {}: {} would fill its range and products would overflow float32",
        policy.format->name, policy.scale));
  }
}

void read_axis(const JsonReader& role, const RoleRow& schema, RolePolicy& policy) {
  const JsonReader key = role.member("axis");
  policy.axis = enumerated<BlockAxis>(key, kAxes, "block axis");
  if (policy.axis == BlockAxis::channel) return;
  if (policy.granularity == Granularity::tile) key.fail("'channel': tiles have no axis");
  if (!schema.operand || policy.block == nullptr || policy.block->span != Span::block)
    key.fail("'channel': only blocks of a weight, an activation or a gradient run along the depth");
}

void read_zero_point(const JsonReader& role, const RoleRow& schema, RolePolicy& policy) {
  const JsonReader key = role.member("zero_point");
  policy.zero_point = enumerated<bool>(key, kZeroPoints, "zero point");
  if (!policy.zero_point) return;
  if (!schema.shifts) {
    key.fail(
        "'none': calibrated zero points are those of activations, keys and values; a weight has "
        "them in blocks, as in \"group(uint4,128,float16,zp)\"");
  }
  if (policy.format->kind != Kind::integer || policy.format->bits > kWidestByte) {
    key.fail(fmt::format("'none' for {}: zero points are those of int2 to int8 and uint2 to uint8",
                         policy.format->name));
  }
  if (policy.granularity != Granularity::tensor || policy.history != 0)
    key.fail("granularity 'tensor' and a scale without history beside 'calibrated'");
  at(role.member("scale"), [&] { find_scale_rule(policy.scale, shifted_format(*policy.format)); });
}

std::string scale_text(const RolePolicy& policy) {
  if (policy.fixed) return "fixed";
  if (policy.history == 0) return policy.scale;
  return policy.scale == "absmax" ? fmt::format("delayed({})", policy.history)
                                  : fmt::format("delayed({},{})", policy.history, policy.scale);
}

bool names_block_format(const Json& role) {
  const auto format = role.find("format");
  return format != role.end() && format->is_string() &&
         !block_format_meant(format->get<std::string>()).empty();
}

std::string canonical_mask(const std::string& text) {
  return is_zap_mask(text) ? to_string(with_digest(parse_zap_mask(text)))
                           : to_string(parse_mask(text));
}

}  // namespace

bool RolePolicy::stores_scale() const { return fixed || find_scale_rule(scale).stores_scale; }

std::string RolePolicy::describe() const {
  return fmt::format("{} {} {} {}/{}", block ? block->name : format->name, to_string(rounding),
                     to_string(overflow), scale_text(*this), name_of(granularity, kGranularities));
}

const std::vector<std::string>& quantization_keys() { return kRoleKeys; }

void require_role_object(const JsonReader& role) {
  if (role.value().is_object()) return;
  // The text itself where it is a format.
  std::string format = "int8";
  if (role.value().is_string()) {
    const std::string text = role.text("");
    if (!block_format_meant(text).empty()) {
      format = text.substr(0, kLongestExample);
    } else {
      try {
        format = find_format(text).name;
      } catch (const Error&) {
      }
    }
  }
  role.fail(fmt::format("an object or null, as in {{\"format\": \"{}\"}}", format));
}

bool stays_float32(const JsonReader& role) {
  if (role.is_null()) return true;
  require_role_object(role);
  role.require_keys(kRoleKeys);
  if (!role.has("format")) return role.has("mask") && role.value().size() == 1;
  const JsonReader format = role.member("format");
  if (format.is_null()) return true;
  if (!format.value().is_string()) return false;
  static const Format& float32 = find_format("float32");
  const std::string name = format.text("");
  const std::vector<std::string> aliases = aliases_of(float32);
  return name == float32.name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

RolePolicy read_role(const JsonReader& role, const RoleRow& schema) {
  role.require_keys(kRoleKeys);
  RolePolicy policy;
  const JsonReader format = role.member("format");
  if (format.is_null()) role.fail("a key 'format'");
  const std::string name = format.text("");
  if (block_format_meant(name).empty()) {
    policy.format = at(format, [&] { return &element_format(name); });
  } else {
    policy.block = at(format, [&] { return &find_block_format(name); });
    policy.format = policy.block->element;
  }
  require_element(format, *policy.format, schema);
  const JsonReader rounding = role.member("rounding");
  policy.rounding = at(rounding, [&] { return parse_rounding(rounding.text("rne")); });
  const JsonReader overflow = role.member("overflow");
  policy.overflow = at(overflow, [&] { return parse_overflow(overflow.text("saturate")); });
  read_granularity(role, schema, policy);
  read_scale(role, schema, policy);
  read_axis(role, schema, policy);
  const JsonReader ste = role.member("ste");
  policy.straight_through =
      enumerated<StraightThrough>(ste, kStraightThrough, "straight-through estimator");
  if (policy.straight_through != StraightThrough::identity && !schema.clips)
    ste.fail("'identity': clipped gradients are those of weights and activations");
  if (policy.straight_through != StraightThrough::identity &&
      policy.granularity == Granularity::tile)
    ste.fail("'identity' for a weight in tiles");
  read_zero_point(role, schema, policy);
  return policy;
}

Json role_json(const RolePolicy& policy) {
  const bool sized =
      policy.block != nullptr && policy.block->name.starts_with("group(") &&
      policy.block == &scaled_format(*policy.format,
                                     policy.block->span == Span::tile ? Span::tile : Span::block,
                                     std::max<std::int64_t>(policy.block->size, 1),
                                     policy.block->rows);
  Json out = {{"format", sized || !policy.block ? policy.format->name : policy.block->name},
              {"rounding", to_string(policy.rounding)},
              {"overflow", to_string(policy.overflow)},
              {"scale", scale_text(policy)},
              {"granularity", name_of(policy.granularity, kGranularities)},
              {"axis", name_of(policy.axis, kAxes)},
              {"mask", nullptr}};
  if (sized) {
    out["block"] = policy.block->span == Span::tile ? Json({policy.block->rows, policy.block->size})
                                                    : Json(policy.block->size);
  }
  if (policy.straight_through != StraightThrough::identity)
    out["ste"] = name_of(policy.straight_through, kStraightThrough);
  if (policy.zero_point) out["zero_point"] = name_of(policy.zero_point, kZeroPoints);
  return out;
}

Json with_canonical_names(Json patch) {
  if (patch.is_object() && patch.contains("mask") && patch["mask"].is_string())
    patch["mask"] = canonical_mask(patch["mask"].get<std::string>());
  // The other values of a role that stays float32 were not looked at.
  if (stays_float32(JsonReader(patch, "recipe"))) return patch;
  for (auto& item : patch.items()) {
    Json& value = item.value();
    if (!value.is_string()) continue;
    const std::string text = value.get<std::string>();
    if (item.key() == "format") {
      value =
          block_format_meant(text).empty() ? find_format(text).name : find_block_format(text).name;
    }
    if (item.key() == "rounding") value = to_string(parse_rounding(text));
    if (item.key() != "scale") continue;
    RolePolicy policy;
    policy.scale = scale_rule_name(text);
    if (const CallText call = parse_call(text); call.name == "delayed") {
      policy.history = whole_argument(call.arguments[0], 1, kLongestHistory).value_or(1);
      policy.scale = call.arguments.size() == 2 ? scale_rule_name(call.arguments[1]) : "absmax";
    }
    value = scale_text(policy);
  }
  return patch;
}

void patch_role(Json& role, const Json& patch) {
  if (patch.contains("format") && names_block_format(patch) != names_block_format(role)) {
    for (const char* key : {"scale", "granularity", "block", "axis"}) role.erase(key);
  }
  // An element format in blocks that stops being in blocks leaves its size behind.
  if (const auto granularity = patch.find("granularity");
      granularity != patch.end() && *granularity != "block" && *granularity != "tile") {
    role.erase("block");
  }
  for (const auto& item : patch.items()) role[item.key()] = item.value();
}

}  // namespace numemu::policies
