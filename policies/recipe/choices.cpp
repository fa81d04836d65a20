#include "policies/recipe/choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/blocks/block_format.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "policies/recipe/error_at.hpp"
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

/// The number of slots for a key that has none.
std::size_t slot_of(std::string_view key) {
  const std::vector<PolicySlot>& slots = policy_slots();
  const auto slot =
      std::find_if(slots.begin(), slots.end(), [&](const PolicySlot& s) { return s.key == key; });
  return static_cast<std::size_t>(slot - slots.begin());
}

}  // namespace

const std::vector<PolicySlot>& policy_slots() {
  static const std::vector<PolicySlot> slots = {
      {"penalty", true, "", "penalty"},
      {"norm", true, "", "norm"},
      {"quantizers", true, "", "quantizers", "keep", true},
      {"exchange", false, "", "exchange", "mean"},
      {"saved", true, "", "saved"},
      {"update.rule", true, "rule", "update"},
      {"update.loss_scale"},
      {"update.master"},
      {"roles.vector.mask"},
      {"transform", true, "", "transform", "none", true, true},
      {"table", true, "", "table", "none", true},
      {"roles.mask"},
      {"roles.scale"},
      {"roles.ste"},
      {"roles.gradient.mask"}};
  return slots;
}

Choices read_choices(const JsonReader& object) {
  Choices choices;
  for (const PolicySlot& slot : policy_slots()) {
    std::optional<std::optional<PolicyChoice>>& choice = choices.emplace_back();
    const std::string name(slot.object);
    if (name.empty() || !object.has(name)) continue;
    const JsonReader key = object.member(name);
    if (slot.member.empty()) {
      choice = read_policy(key, slot.key, slot.plain);
    } else if (!key.is_null() && key.has(std::string(slot.member))) {
      choice = read_policy(key.member(std::string(slot.member)), slot.key, slot.plain);
    }
  }
  return choices;
}

void write_choices(const Choices& choices, bool explicit_none, Json& out) {
  const std::vector<PolicySlot>& slots = policy_slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!choices[i] || (!*choices[i] && !explicit_none)) continue;
    Json value;
    if (*choices[i] && slots[i].member.empty()) value = policy_json(**choices[i]);
    if (*choices[i] && !slots[i].member.empty()) value = policy_text(**choices[i]);
    if (slots[i].member.empty()) {
      out[slots[i].object] = std::move(value);
    } else {
      out[slots[i].object][slots[i].member] = std::move(value);
    }
  }
}

bool acts_in_inference(const PolicySlot& slot, const PolicyChoice& choice) {
  return choice.kind->in_inference == nullptr ? slot.in_inference
                                              : choice.kind->in_inference(*choice.options);
}

bool chooses(const Recipe& recipe, std::string_view key, std::string_view layer) {
  return recipe.policies(layer).at(slot_of(key)).has_value();
}

bool chooses_for_inference(const Recipe& recipe, std::string_view key, std::string_view layer) {
  const std::size_t slot = slot_of(key);
  const auto choices = recipe.policies(layer);
  return choices.at(slot) && acts_in_inference(policy_slots()[slot], *choices.at(slot));
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
