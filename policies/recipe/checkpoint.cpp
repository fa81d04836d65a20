#include "policies/recipe/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/weights.hpp"
#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::policies {

namespace {

/// Formats and scale rules of weights and activations alone: what a recipe says besides names files
/// (units, tables, predictors), and metadata must not open any.
Json coded_roles(const JsonReader& roles) {
  Json out = Json::object();
  for (const char* const name : {"weight", "activation"}) {
    if (!roles.value().is_object() || !roles.has(name)) continue;
    Json role = roles.member(name).value();
    if (role.is_object()) {
      role.erase("mask");
      // A codebook's name is that of a file; no type stores its codes.
      if (role.contains("format") && role["format"].is_string() &&
          role["format"].get<std::string>().find("codebook") != std::string::npos)
        role = nullptr;
    }
    out[name] = std::move(role);
  }
  return out;
}

Recipe recipe_of(const std::string& path) {
  const std::string where = path + ": metadata: recipe";
  InputFile file(path);
  for (const auto& [key, text] : read_safetensors_header(file, {}).metadata) {
    if (key != "recipe") continue;
    const Json json = parse_json(text, where);
    const JsonReader given(json, where);
    Json out = {{"roles", coded_roles(given.member("roles"))}};
    const JsonReader layers = given.member("layers");
    for (std::size_t i = 0; !layers.is_null() && i < layers.value().size(); ++i) {
      const JsonReader entry = layers.element(i);
      if (!entry.has("roles")) continue;
      out["layers"].push_back({{"match", entry.member("match").value()},
                               {"roles", coded_roles(entry.member("roles"))}});
    }
    return Recipe::make(std::move(out), where);
  }
  throw Error(path + ": metadata: expected the recipe of the codes under 'recipe', found none");
}

std::string text_of(const ValueRange& range) {
  return fmt::format("[{}, {}]", range.low, range.high);
}

/// What a file says of one layer twice.
class TwiceTold {
 public:
  TwiceTold(const std::string& path, const std::string& layer) : path_(path), layer_(layer) {}

  void require_format(const char* what, const std::optional<RolePolicy>& role,
                      const Format& found) const {
    if (role && role->block == nullptr && role->format == &found) return;
    fail(fmt::format("metadata: {}", name(what, "_format")),
         fmt::format("{} as metadata 'recipe' has it",
                     role ? (role->block ? role->block->name : role->format->name) : "float32"),
         found.name);
  }
  void require_zero(const RolePolicy& role, std::int32_t zero) const {
    if (zero != 0 && !role.zero_point)
      fail("tensor " + name("input", "_zero_point"), "0, as metadata 'recipe' has no zero point",
           fmt::format("{}", zero));
  }
  /// `i`: among the scales of the tensor.
  void require_range(const char* what, std::size_t i, const std::optional<ValueRange>& stored,
                     const std::optional<ValueRange>& of_scale, bool zero_point = false) const {
    if (stored == of_scale) return;
    fail(fmt::format("tensor {}: element {}", name(what, "_scale"), i),
         stored ? fmt::format("a scale{} of the range {} in metadata 'ranges'",
                              zero_point ? " and its zero point" : "", text_of(*stored))
                : "none, as metadata 'ranges' has no range of it",
         of_scale ? "one of the range " + text_of(*of_scale) : "none");
  }

 private:
  std::string name(const char* what, const char* end) const {
    return quote_name(fmt::format("{}.{}{}", layer_, what, end));
  }
  [[noreturn]] void fail(const std::string& where, const std::string& expected,
                         const std::string& found) const {
    throw Error(fmt::format("{}: {}: expected {}, found {}", path_, where, expected, found));
  }

  const std::string &path_, &layer_;
};

template <class T>
std::optional<T> element(const std::vector<T>& list, std::size_t i) {
  return i < list.size() ? std::optional(list[i]) : std::nullopt;
}

}  // namespace

FixedRanges ranges_of_codes(const Recipe& recipe, const net::OnnxLayers& layers) {
  FixedRanges ranges;
  for (const auto& [name, layer] : layers) {
    const LayerRecipe roles = recipe.layer(name);
    // Blocks, and floats without a scale, have none.
    if (layer.weight && !layer.weight->blocks)
      for (const float scale : layer.weight->scales)
        ranges[name].weight.push_back(range_of(*roles[RolePart::weight], {scale}));
    if (layer.activation && !layer.activation->scales.empty())
      ranges[name].activation =
          range_of(*roles[RolePart::activation],
                   {layer.activation->scales[0], layer.activation->zero_point});
  }
  return ranges;
}

void require_ranges_of_codes(const std::string& path, const FixedRanges& ranges) {
  const std::optional<net::OnnxLayers> layers = net::coded_layers_of(path);
  if (!layers || (layers->empty() && ranges.empty())) return;
  const Recipe recipe = recipe_of(path);
  std::set<std::string> names;
  for (const auto& [name, layer] : *layers) names.insert(name);
  for (const auto& [name, range] : ranges) names.insert(name);
  for (const auto& [name, layer] : *layers) {
    const TwiceTold told(path, name);
    const LayerRecipe roles = recipe.layer(name);
    if (layer.weight) told.require_format("weight", roles[RolePart::weight], *layer.weight->format);
    if (!layer.activation) continue;
    told.require_format("input", roles[RolePart::activation], *layer.activation->format);
    told.require_zero(*roles[RolePart::activation], layer.activation->zero_point);
  }
  const FixedRanges of_codes = ranges_of_codes(recipe, *layers);
  for (const std::string& name : names) {
    const TwiceTold told(path, name);
    const auto of = [&](const FixedRanges& all) {
      const auto found = all.find(name);
      return found == all.end() ? LayerRanges{} : found->second;
    };
    const LayerRanges stored = of(ranges), derived = of(of_codes);
    for (std::size_t i = 0; i < std::max(stored.weight.size(), derived.weight.size()); ++i)
      told.require_range("weight", i, element(stored.weight, i), element(derived.weight, i));
    const std::optional<RolePolicy>& role = recipe.layer(name)[RolePart::activation];
    told.require_range("input", 0, stored.activation, derived.activation, role && role->zero_point);
  }
}

namespace {

constexpr std::string_view kRangesKey = "ranges";

/// The header of a .safetensors file that exists.
std::optional<SafetensorsHeader> header_of(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with(".safetensors") || !std::filesystem::exists(path, ignored)) return {};
  InputFile file(path);
  return read_safetensors_header(file, {});
}

bool has_before(const SafetensorsHeader& header) {
  return std::ranges::any_of(
      header.entries, [](const SafetensorsEntry& entry) { return net::is_tuned_from(entry.name); });
}

}  // namespace

void add_ranges(net::Checkpoint& checkpoint, const FixedRanges& ranges) {
  if (!ranges.empty()) checkpoint.metadata.emplace_back(kRangesKey, ranges_json(ranges).dump());
}

FixedRanges checkpoint_ranges(const std::string& path) {
  const std::optional<SafetensorsHeader> header = header_of(path);
  if (!header) return {};
  FixedRanges ranges;
  const auto found =
      std::ranges::find(header->metadata, kRangesKey, &std::pair<std::string, std::string>::first);
  if (found != header->metadata.end()) {
    const std::string where = path + ": metadata: ranges";
    const Json json = parse_json(found->second, where);
    ranges = read_ranges(JsonReader(json, where));
  }
  require_ranges_of_codes(path, ranges);
  return ranges;
}

bool trained_without_before(const std::string& path) {
  const std::optional<SafetensorsHeader> header = header_of(path);
  if (!header || has_before(*header)) return false;
  const auto has = [&](std::string_view key) {
    return std::ranges::any_of(header->metadata,
                               [&](const auto& entry) { return entry.first == key; });
  };
  return has("training") && has("recipe");
}

std::vector<std::string> notes_on_baseline(const std::string& path, bool before) {
  const std::optional<SafetensorsHeader> header = header_of(path);
  if (before || (header && has_before(*header)))
    return {
        "accuracy is compared with the network before tuning or fine-tuning in float32; SQNR and "
        "its predictions compare with the tuned weights in float32, of which steps may have "
        "rounded some already"};
  if (!trained_without_before(path)) return {};
  return {
      "the checkpoint was trained under a recipe and has no network from before that: accuracy is "
      "compared with its own weights in float32"};
}

Recipe with_checkpoint_ranges(const Recipe& recipe, const std::string& path,
                              const std::string& where) {
  const FixedRanges ranges = checkpoint_ranges(path);
  return ranges.empty() || !ranges_of(recipe).empty() ? recipe : with_ranges(recipe, ranges, where);
}

}  // namespace numemu::policies
