#include "policies/recipe/choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/blocks/block_format.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::policies {
namespace {

/// Whether `saved` chooses a policy or "none", not a role: its name, a rule, or an option that no
/// role has.
bool saved_by_policy(const JsonReader& saved) {
  if (saved.value() == "none") return true;
  for (const PolicyKind* kind : all_policies()) {
    if (kind->key != "saved") continue;
    if (saved.value().is_string() && parse_call(saved.text("")).name == kind->name) return true;
    if (!saved.value().is_object()) continue;
    if (saved.has("rule")) return true;
    const std::vector<std::string>& role_keys = quantization_keys();
    for (const Option& option : kind->options()->list()) {
      const std::string key(option.key);
      if (saved.has(key) && std::find(role_keys.begin(), role_keys.end(), key) == role_keys.end())
        return true;
    }
  }
  return false;
}

bool names_format(const std::string& text) {
  if (!block_format_meant(text).empty()) return true;
  try {
    find_format(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

const std::vector<PolicySlot>& policy_slots() {
  static const std::vector<PolicySlot> slots = {
#define NUMEMU_SLOT(...) {.key = __VA_ARGS__},
#include "policies/slots.def"
#undef NUMEMU_SLOT
  };
  return slots;
}

std::size_t slot_of(std::string_view key) {
  const auto slot = std::ranges::find(policy_slots(), key, &PolicySlot::key);
  return static_cast<std::size_t>(slot - policy_slots().begin());
}

Choices read_choices(const JsonReader& object) {
  Choices choices;
  for (const PolicySlot& slot : policy_slots()) {
    std::optional<std::optional<PolicyChoice>>& choice = choices.emplace_back();
    const std::string name(slot.object()), member(slot.member());
    if (name.empty() || !object.has(name)) continue;
    const JsonReader key = object.member(name);
    if (member.empty()) {
      Json own = key.value();
      for (const std::string_view beside : slot.beside) {
        if (own.is_object()) own.erase(std::string(beside));
      }
      choice = read_policy(key.replaced_by(own), slot.key, slot.plain);
    } else if (!key.is_null() && key.has(member)) {
      choice = read_policy(key.member(member), slot.key, slot.plain);
    }
  }
  return choices;
}

void write_choices(const Choices& choices, bool explicit_none, Json& out) {
  const std::vector<PolicySlot>& slots = policy_slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!choices[i] || (!*choices[i] && !explicit_none)) continue;
    const std::string_view member = slots[i].member();
    Json value;
    if (*choices[i])
      value = member.empty() ? policy_json(**choices[i]) : Json(policy_text(**choices[i]));
    Json& object = out[slots[i].object()];
    (member.empty() ? object : object[member]) = std::move(value);
  }
}

bool acts_in_inference(const PolicySlot& slot, const PolicyChoice& choice) {
  return choice.kind->in_inference == nullptr ? slot.in_inference
                                              : choice.kind->in_inference(*choice.options);
}

Json with_role_keys_moved(const JsonReader& recipe, const std::vector<std::string>& keys) {
  Json moved = recipe.value();
  for (const std::string& name : keys) {
    const JsonReader key = recipe.member(name);
    if (name == "saved" && !key.is_null()) {
      if (saved_by_policy(key)) continue;
      if (key.value().is_string() && !names_format(key.text("")))
        at(key, [&] { return &find_policy("saved", parse_call(key.text("")).name); });
      require_role_object(key);
    }
    if (!key.value().is_object()) continue;
    Json role = Json::object(), rest = Json::object();
    const std::vector<std::string>& role_keys = quantization_keys();
    for (const auto& item : key.value().items()) {
      const bool of_role =
          std::find(role_keys.begin(), role_keys.end(), item.key()) != role_keys.end();
      (of_role ? role : rest)[item.key()] = item.value();
    }
    if (name == "saved") key.require_keys(role_keys);
    if (role.empty()) continue;
    const JsonReader roles = recipe.member("roles");
    if (!roles.is_null() && !roles.value().is_object()) roles.fail("an object");
    if (!roles.is_null() && !roles.member(name).is_null())
      key.fail(fmt::format("the keys of a format here or in roles.{}, not in both", name));
    moved["roles"][name] = std::move(role);
    if (rest.empty()) {
      moved.erase(name);
    } else {
      moved[name] = std::move(rest);
    }
  }
  return moved;
}

}  // namespace numemu::policies
