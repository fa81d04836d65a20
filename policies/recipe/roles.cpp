// The roles and units of a recipe: read strictly, every default written out.
#include "policies/recipe/roles.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "policies/scale_rule.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kDefaultUnit = "neutral.f32.sequential";
constexpr int kWidestExponent = 8;
constexpr int kWidestOperand = 16;  // stored bits of a quantized role

const std::vector<std::string> kRoleKeys = {"format",      "rounding", "overflow", "scale",
                                            "granularity", "axis",     "mask"};
const std::vector<std::string> kQuantizedRoles = {"weight", "activation", "gradient"};
const std::vector<std::string> kFloat32Roles = {"vector", "output", "saved", "state", "exchange"};

/// Runs `read` and puts the key in front of an Error from below (an unknown format, rounding...).
template <class Read>
auto at(const JsonReader& key, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", key.where(), error.what()));
  }
}

Json role_json(const RolePolicy& policy) {
  return {{"format", policy.format->name},
          {"rounding", to_string(policy.rounding)},
          {"overflow", to_string(policy.overflow)},
          {"scale", policy.scale},
          {"granularity", policy.granularity == Granularity::tensor ? "tensor" : "channel"},
          {"axis", "channel"},
          {"mask", nullptr}};
}

/// null, {"format": null} and {"format": "float32"} all say: not quantized.
bool stays_float32(const JsonReader& role) {
  if (role.is_null()) return true;
  if (!role.has("format")) return false;
  const JsonReader format = role.member("format");
  return format.is_null() || format.value() == "float32";
}

/// A role of the base recipe or of a merged layer, canonical.
Json canonical_role(const JsonReader& role, bool activation) {
  if (stays_float32(role)) return nullptr;
  const RolePolicy policy = read_role(role);
  if (activation && policy.granularity == Granularity::channel) {
    role.member("granularity")
        .fail(
            "'tensor': a scale per activation channel runs along the reduction axis and cannot be "
            "applied after the unit");
  }
  return role_json(policy);
}

Json canonical_gradient(const JsonReader& role) {
  if (role.has("dgrad") || role.has("wgrad")) {
    role.require_keys({"dgrad", "wgrad"});
    return {{"dgrad", canonical_role(role.member("dgrad"), true)},
            {"wgrad", canonical_role(role.member("wgrad"), true)}};
  }
  return canonical_role(role, true);
}

}  // namespace

std::vector<std::string> role_names() {
  std::vector<std::string> names = kQuantizedRoles;
  names.insert(names.end(), kFloat32Roles.begin(), kFloat32Roles.end());
  return names;
}

RolePolicy read_role(const JsonReader& role) {
  role.require_keys(kRoleKeys);
  RolePolicy policy;
  const JsonReader format = role.member("format");
  if (format.is_null()) role.fail("a key 'format'");
  policy.format = at(format, [&] { return &find_format(format.text("")); });
  if (policy.format->bits > kWidestOperand) {
    format.fail(fmt::format("a format of at most {} bits, not {} (null is float32, not quantized)",
                            kWidestOperand, policy.format->name));
  }
  if (policy.format->exponent_bits > kWidestExponent) {
    format.fail(fmt::format("a format of at most {} exponent bits, as float32 has, not {}",
                            kWidestExponent, policy.format->name));
  }
  if (!policy.format->has_zero()) format.fail("a format with a zero, not " + policy.format->name);
  const JsonReader rounding = role.member("rounding");
  policy.rounding = at(rounding, [&] { return parse_rounding(rounding.text("rne")); });
  const JsonReader overflow = role.member("overflow");
  policy.overflow = at(overflow, [&] { return parse_overflow(overflow.text("saturate")); });
  const JsonReader scale = role.member("scale");
  policy.scale = at(scale, [&] { return std::string(find_scale_rule(scale.text("absmax")).name); });
  if (find_scale_rule(policy.scale).fills_range && largest_value(*policy.format) > kWidestFilled) {
    scale.fail(fmt::format(
        "the scale rule none for {}: {} would fill its range, and products would leave float32",
        policy.format->name, policy.scale));
  }
  policy.granularity =
      role.member("granularity").one_of("tensor", {"tensor", "channel"}, "granularity") == "tensor"
          ? Granularity::tensor
          : Granularity::channel;
  role.member("axis").one_of("channel", {"channel"}, "block axis");
  const JsonReader mask = role.member("mask");
  if (!mask.is_null())
    throw Error(fmt::format("{}: unknown mask '{}' (there are none; null keeps every element)",
                            mask.where(), mask.value().dump()));
  return policy;
}

Json canonical_roles(const JsonReader& roles) {
  if (!roles.is_null()) roles.require_keys(role_names());
  Json out = {{"weight", canonical_role(roles.member("weight"), false)},
              {"activation", canonical_role(roles.member("activation"), true)},
              {"gradient", canonical_gradient(roles.member("gradient"))}};
  for (const std::string& name : kFloat32Roles) {
    const JsonReader role = roles.member(name);
    if (!stays_float32(role)) {
      throw Error(fmt::format(
          "{}: no policy quantizes the role '{}' (there are: {}); null keeps it float32",
          role.where(), name, fmt::join(kQuantizedRoles, ", ")));
    }
    out[name] = nullptr;
  }
  return out;
}

Json canonical_gemms(const JsonReader& gemms) {
  if (!gemms.is_null()) gemms.require_keys(kGemms);
  Json out;
  for (const std::string& kind : kGemms) {
    const JsonReader gemm = gemms.member(kind);
    if (!gemm.is_null()) gemm.require_keys({"unit"});
    const JsonReader name = gemm.member("unit");
    if (name.value().is_object())
      throw Error(name.where() + ": described units do not exist (name a unit of the table)");
    out[kind] = {
        {"unit", at(name, [&] { return unit::find_unit(name.text(kDefaultUnit)).row().name; })}};
  }
  return out;
}

void require_units_take(const Json& layer, const JsonReader& where) {
  const auto check = [&](const Json& role, const char* kind) {
    if (!role.is_object() || !role.contains("format")) return;
    at(where.member("gemms").member(kind).member("unit"), [&] {
      unit::find_unit(layer["gemms"][kind]["unit"].get<std::string>())
          .require_operand(find_format(role["format"].get<std::string>()));
      return 0;
    });
  };
  const Json& roles = layer["roles"];
  for (const char* kind : {"fprop", "dgrad"}) check(roles["weight"], kind);
  for (const char* kind : {"fprop", "wgrad"}) check(roles["activation"], kind);
  for (const char* kind : {"dgrad", "wgrad"}) {
    const Json& gradient = roles["gradient"];
    check(gradient.is_object() && gradient.contains(kind) ? gradient[kind] : gradient, kind);
  }
}

}  // namespace numemu::policies
