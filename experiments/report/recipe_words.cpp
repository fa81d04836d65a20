// Recipes in words: formats and units by short names, rules of single layers, what differs.
#include <fmt/format.h>

#include <algorithm>

#include "emu/unit/catalogue/models.hpp"
#include "experiments/predict/unit_errors.hpp"
#include "experiments/report/names.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {
namespace {

std::string dumped(const Json& value) { return value.dump(-1, Json::NotUtf8::replace); }

/// "int8 greedy(2:4)", "float32 greedy(2:4)", "scale mse(17)": format and mask, then every other
/// key with its name; a gradient that is split part by part.
std::string role_words(const Json& role) {
  if (!role.is_object()) return role.is_null() ? "float32" : dumped(role);
  std::string words = json_text(role, {"format"});
  const std::string mask = json_text(role, {"mask"});
  const auto add = [&words](const std::string& text) {
    words += (words.empty() ? "" : " ") + text;
  };
  if (!mask.empty()) words = (words.empty() ? "float32 " : words + " ") + mask;
  for (const auto& [key, value] : role.items()) {
    if (key == "format" || (key == "mask" && !value.is_null())) continue;
    if (value.is_object()) {
      add(key + " " + role_words(value));
    } else if (key == "scale") {
      add("scale " + shown_scale(json_text(role, {"scale"})));
    } else if (!value.is_null()) {
      add(key + " " + json_text(role, {key.c_str()}));
    }
  }
  return words.empty() ? "float32" : words;
}

/// "transform hadamard block 32": the policies that an object of a recipe chooses and that act in
/// inference.
std::vector<std::string> policy_words(const Json& object) {
  std::vector<std::string> all;
  for (const policies::PolicySlot& slot : policies::policy_slots()) {
    const std::string key(slot.object());
    const Json* const choice = json_at(object, {key.c_str()});
    if (key.empty() || !slot.in_inference || choice == nullptr) continue;
    std::string words = key + " " + (choice->is_null() ? "none" : json_text(object, {key.c_str()}));
    if (choice->is_object()) {
      words = key + " " + json_text(*choice, {"rule"});
      for (const auto& [option, value] : choice->items()) {
        if (option != "rule") words += " " + option + " " + json_text(*choice, {option.c_str()});
      }
    }
    all.push_back(std::move(words));
  }
  return all;
}

/// "fc*: weight mxfp4, fprop exact".
std::string layer_rule(const Json& rule) {
  std::string out;
  for (const char* part : {"roles", "gemms"}) {
    const Json* items = json_at(rule, {part});
    if (!items || !items->is_object()) continue;
    for (const auto& [name, item] : items->items()) {
      const std::string words =
          part[0] == 'r' ? role_words(item) : unit_words(json_at(item, {"unit"}));
      out += fmt::format("{} {} {}", out.empty() ? "" : ",", name,
                         words.empty() ? "default unit" : words);
    }
  }
  for (const std::string& words : policy_words(rule))
    out += fmt::format("{} {}", out.empty() ? "" : ",", words);
  return layer_words(json_text(rule, {"match"})) + ":" + out;
}

/// What one layer has under the base and its rules.
struct Effective {
  std::string weight = "float32", activation = "float32", unit;
  std::string rest;  ///< keys that rules change beside formats and the unit

  std::string formats() const {
    const std::string w = short_format(weight), a = short_format(activation);
    return w == a ? w : w + " / " + a;
  }
};

std::string format_of(const Json* role) {
  const std::string name = role && role->is_object() ? json_text(*role, {"format"}) : "";
  return name.empty() ? "float32" : name;
}

Effective base_of(const Json& recipe) {
  return {format_of(json_at(recipe, {"roles", "weight"})),
          format_of(json_at(recipe, {"roles", "activation"})),
          unit_words(json_at(recipe, {"gemms", "fprop", "unit"})), ""};
}

void apply_rule(const Json& rule, Effective& layer) {
  if (const Json* roles = json_at(rule, {"roles"}); roles && roles->is_object()) {
    for (const auto& [name, patch] : roles->items()) {
      std::string* const format = name == "weight"       ? &layer.weight
                                  : name == "activation" ? &layer.activation
                                                         : nullptr;
      const bool names_format = !patch.is_object() || patch.contains("format");
      if (format && names_format) *format = format_of(&patch);
      Json rest = patch;
      if (format && rest.is_object()) rest.erase("format");
      if (!format || (rest.is_object() && !rest.empty()))
        layer.rest +=
            fmt::format("{}{} {}", layer.rest.empty() ? "" : ", ", name, role_words(rest));
    }
  }
  for (const std::string& words : policy_words(rule))
    layer.rest += (layer.rest.empty() ? "" : ", ") + words;
  if (const std::string unit = unit_words(json_at(rule, {"gemms", "fprop", "unit"})); !unit.empty())
    layer.unit = unit;
}

}  // namespace

std::string unit_words(const Json* unit) {
  if (!unit || unit->is_null()) return "";
  if (unit->is_string()) return unit->get<std::string>();
  if (const std::string name = json_text(*unit, {"name"}); !name.empty()) return name;
  return dumped(*unit);
}

std::string layer_rules(const Json& recipe) {
  std::string out;
  const Json* layers = json_at(recipe, {"layers"});
  if (!layers || !layers->is_array()) return out;
  for (const Json& layer : *layers) out += (out.empty() ? "" : "; ") + layer_rule(layer);
  return out;
}

std::string other_rules(const Json& recipe) {
  std::string out;
  const auto add = [&out](const std::string& text) {
    if (!text.empty()) out += (out.empty() ? "" : "; ") + text;
  };
  if (const Json* roles = json_at(recipe, {"roles"}); roles && roles->is_object()) {
    for (const auto& [name, role] : roles->items()) {
      if (name == "weight" || name == "activation" || !role.is_object()) continue;
      std::string words;
      if (role.contains("format")) {
        for (const char* key : {"format", "rounding", "overflow", "scale", "granularity", "mask"}) {
          const std::string text = json_text(role, {key});
          if (!text.empty()) words += " " + (key[0] == 's' ? shown_scale(text) : text);
        }
      } else {
        for (const auto& [part, rule] : role.items()) {
          if (rule.is_object()) words += " " + part + " " + role_words(rule);
        }
      }
      add(name + words);
    }
  }
  for (const std::string& words : policy_words(recipe)) add(words);
  add(layer_rules(recipe));
  return out;
}

std::optional<Rounding> role_rounding(const Json& recipe, const std::string& layer,
                                      const std::string& role) {
  const auto text_in = [&role](const Json& rules) {
    return json_text(rules, {"roles", role.c_str(), "rounding"});
  };
  std::string text = text_in(recipe);
  if (const Json* rules = json_at(recipe, {"layers"}); rules && rules->is_array()) {
    for (const Json& rule : *rules) {
      if (!glob_match(json_text(rule, {"match"}), layer)) continue;
      if (const std::string own = text_in(rule); !own.empty()) text = own;
    }
  }
  if (text.empty()) return Rounding{};
  try {
    return parse_rounding(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string layer_overrides(const Row& row) {
  const Json* rules = json_at(row.point.recipe, {"layers"});
  if (!rules || !rules->is_array() || rules->empty()) return "";
  std::vector<std::string> layers;
  for (const RowLayer& layer : row.layers) layers.push_back(layer.name);
  const bool named = !layers.empty();
  if (!named) {  // a point that has not run: its rules, by their globs
    for (const Json& rule : *rules) layers.push_back(json_text(rule, {"match"}));
  }
  const Effective base = base_of(row.point.recipe);
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // words -> layers
  for (const std::string& layer : layers) {
    Effective own = base;
    for (const Json& rule : *rules) {
      const std::string match = json_text(rule, {"match"});
      if (match == layer || (named && glob_match(match, layer))) apply_rule(rule, own);
    }
    std::string words = own.formats() == base.formats() ? "" : own.formats();
    if (own.unit != base.unit) words += (words.empty() ? "on " : " on ") + short_unit(own.unit);
    if (words.empty()) words = own.rest;
    if (words.empty()) continue;
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == words; });
    if (found == groups.end()) {
      groups.push_back({words, {layer}});
    } else {
      found->second.push_back(layer);
    }
  }
  std::string out;
  for (const auto& [words, members] : groups) {
    const std::string where = members.size() == 1 ? layer_words(members[0])
                              : members.size() == layers.size()
                                  ? "all layers"
                                  : fmt::format("{} layers", members.size());
    out += fmt::format("{}{} {}", out.empty() ? "" : " + ", where, words);
  }
  return out;
}

std::string layer_words(const std::string& glob) { return glob == "*" ? "all layers" : glob; }

std::string short_format(const std::string& name) {
  const std::size_t digits = name.find_first_not_of("0123456789", 5);
  if (!name.starts_with("float") || digits == std::string::npos || digits == 5) return name;
  if (name[digits] != '_' || digits + 1 >= name.size()) return name;
  const std::string rest = name.substr(digits + 1);
  try {  // e4m3 in the name of a unit is float8_e4m3fn: the other one keeps its whole name
    const Format* const in_units = unit::format_of_type(rest);
    return in_units == nullptr || in_units->name == name ? rest : name;
  } catch (const Error&) {  // a row of a program that has more formats
    return rest;
  }
}

std::string short_unit(const std::string& name) {
  return name.starts_with("neutral.") ? name.substr(8) : name;
}

std::string shown_scale(const std::string& rule) { return rule == "mse" ? "mse(17)" : rule; }

bool prediction_ignores(const std::string& unit) { return !unit.empty() && unit_adds_noise(unit); }

}  // namespace numemu::experiments
