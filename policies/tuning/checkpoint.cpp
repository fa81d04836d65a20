#include "policies/tuning/checkpoint.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "emu/net/model/tuned_from.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/safetensors_header.hpp"
#include "policies/recipe/coded_ranges.hpp"

namespace numemu::policies {
namespace {

constexpr std::string_view kKey = "ranges";

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
  if (!ranges.empty()) checkpoint.metadata.emplace_back(kKey, ranges_json(ranges).dump());
}

FixedRanges checkpoint_ranges(const std::string& path) {
  const std::optional<SafetensorsHeader> header = header_of(path);
  if (!header) return {};
  FixedRanges ranges;
  const auto found =
      std::ranges::find(header->metadata, kKey, &std::pair<std::string, std::string>::first);
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
