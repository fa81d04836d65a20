#include "experiments/allocation/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/engine/experiment.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::experiments {
namespace {

const char* const kWhere = "--set: options";

/// A role with every default of its format, so that nothing of the recipe below shines through.
Json role_of(const char* name, const std::string& format, const std::string& scale,
             const std::string& granularity, const std::string& where) {
  Json role = {{"format", format}};
  if (policies::stays_float32(JsonReader(role, where))) return nullptr;
  if (!scale.empty()) role["scale"] = scale;
  set_weight_granularity(role, name, granularity, where);
  const Json whole = role;
  return policies::role_json(
      policies::read_role(JsonReader(whole, where), policies::role_row(name)));
}

/// Cuts the part behind the last `mark` outside parentheses off the text.
std::string cut(std::string& text, char mark) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    depth += text[i] == ')';
    depth -= text[i] == '(';
    if (text[i] != mark || depth != 0) continue;
    std::string part = text.substr(i + 1);
    text.resize(i);
    return part;
  }
  return "";
}

LayerChoice read_choice(const std::string& text, const std::string& granularity) {
  const std::string where = fmt::format("{}: {}", kWhere, text);
  std::string formats = text;
  const std::string unit = cut(formats, '@'), scale = cut(formats, '~'), second = cut(formats, '/'),
                    activation = second.empty() ? formats : second;
  if (formats.empty() || text.ends_with('@') || text.ends_with('~') || text.ends_with('/'))
    throw Error(where + ": expected WEIGHTS[/ACTIVATIONS][~SCALE][@UNIT]");
  LayerChoice choice{
      text,
      {{"roles",
        {{"weight", role_of("weight", formats, scale, granularity, where)},
         {"activation", role_of("activation", activation, scale, granularity, where)}}}}};
  if (!unit.empty()) choice.patch["gemms"] = {{"fprop", {{"unit", unit}}}};
  return choice;
}

std::vector<LayerChoice> read_file(const std::string& path) {
  const Json json = parse_json(read_text(path), path);
  const JsonReader reader(json, path);
  if (!json.is_array() || json.empty()) reader.fail("a list of options");
  std::vector<LayerChoice> out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonReader option = reader.element(i);
    option.require_keys({"name", "roles", "gemms"});
    LayerChoice choice{option.member("name").text(""), Json::object()};
    if (choice.name.empty()) option.fail("a name");
    for (const char* key : {"roles", "gemms"}) {
      if (option.has(key)) choice.patch[key] = option.value()[key];
    }
    out.push_back(std::move(choice));
  }
  return out;
}

}  // namespace

std::vector<LayerChoice> read_choices(const std::vector<std::string>& texts,
                                      const std::string& granularity) {
  std::vector<LayerChoice> out;
  for (const std::string& text : texts) {
    for (LayerChoice& choice :
         text.ends_with(".json") ? read_file(text) : std::vector{read_choice(text, granularity)}) {
      if (std::ranges::find(out, choice.name, &LayerChoice::name) != out.end())
        throw Error(
            fmt::format("{}: expected every option once, found {} twice", kWhere, choice.name));
      out.push_back(std::move(choice));
    }
  }
  if (out.empty()) throw Error(std::string(kWhere) + ": expected at least one option");
  return out;
}

Json layer_entry(const std::string& layer, const LayerChoice& choice) {
  Json entry = {{"match", layer}};
  for (const auto& [key, value] : choice.patch.items()) entry[key] = value;
  return entry;
}

Json with_layers(Json recipe, const Json& entries) {
  Json layers = recipe.value("layers", Json::array());
  for (const Json& entry : entries) layers.push_back(entry);
  recipe["layers"] = layers;
  return recipe;
}

}  // namespace numemu::experiments
