#include "policies/tuning/checkpoint.hpp"

#include <filesystem>

#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::policies {
namespace {

constexpr std::string_view kKey = "ranges";

}  // namespace

void add_ranges(net::Checkpoint& checkpoint, const FixedRanges& ranges) {
  if (!ranges.empty()) checkpoint.metadata.emplace_back(kKey, ranges_json(ranges).dump());
}

FixedRanges checkpoint_ranges(const std::string& path) {
  std::error_code ignored;
  if (!path.ends_with(".safetensors") || !std::filesystem::exists(path, ignored)) return {};
  InputFile file(path);
  for (const auto& [key, value] : read_safetensors_header(file, {}).metadata) {
    if (key != kKey) continue;
    const std::string where = path + ": metadata: ranges";
    const Json json = parse_json(value, where);
    return read_ranges(JsonReader(json, where));
  }
  return {};
}

Recipe with_checkpoint_ranges(const Recipe& recipe, const std::string& path,
                              const std::string& where) {
  if (!ranges_of(recipe).empty()) return recipe;
  const FixedRanges ranges = checkpoint_ranges(path);
  return ranges.empty() ? recipe : with_ranges(recipe, ranges, where);
}

}  // namespace numemu::policies
