// What a line of a rows file must hold before anything reads it.
#include "experiments/engine/row_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/error.hpp"
#include "formats/storage/json_guard.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

bool is_text(const Json& value) { return value.is_string(); }
/// A name, or the description of a unit.
bool is_unit(const Json& value) { return value.is_string() || value.is_object(); }
bool is_number(const Json& value) { return value.is_number(); }
bool is_number_or_null(const Json& value) { return value.is_number() || value.is_null(); }
bool is_list(const Json& value) { return value.is_array(); }

bool is_interval(const Json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number();
}

bool is_role(const Json& value) {
  if (!value.is_object()) return value.is_null();
  const auto text = [&](const char* key) { return value.contains(key) && value[key].is_string(); };
  // A mask alone: float32 numbers of which some are kept.
  if (value.contains("format") && value["format"].is_null()) return text("mask");
  return text("format") && text("rounding") && text("overflow") && text("scale") &&
         text("granularity");
}

bool is_layers(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& layer) {
           return layer.is_object() && layer.contains("name") && layer["name"].is_string();
         });
}

struct Needed {
  const char* path;  ///< JSON pointer
  bool (*holds)(const Json&);
  const char* what;
};

/// What tables and reports take for granted in a row; everything else is read leniently.
constexpr const char* kRole =
    "null or an object with format, rounding, overflow, scale, granularity, or with a mask alone";
constexpr Needed kNeeded[] = {
    {"/point/net", is_text, "a string"},
    {"/point/data", is_text, "a string"},
    {"/point/recipe/roles/weight", is_role, kRole},
    {"/point/recipe/roles/activation", is_role, kRole},
    {"/point/recipe/gemms/fprop/unit", is_unit, "a string or a described unit"},
    {"/bits/weight", is_number, "a number"},
    {"/bits/activation", is_number, "a number"},
    {"/metrics/top1", is_number, "a number"},
    {"/metrics/n", is_number, "a number"},
    {"/metrics/ci95", is_interval, "two numbers"},
    {"/metrics/loss", is_number_or_null, "a number or null"},
    {"/predicted/tensors", is_list, "a list"},
    {"/layers", is_layers, "a list of objects with a name"},
};

[[noreturn]] void refuse_row(const std::string& path, std::size_t number, const std::string& what) {
  throw Error(fmt::format("{}: line {}: expected a row with {}", path, number, what));
}

}  // namespace

Json parse_identity(const std::string& line, const std::string& path, std::size_t number) {
  guard_json(line, fmt::format("{}: line {}", path, number));
  Json row = Json::parse(line, nullptr, false);
  if (!row.is_object())
    throw Error(fmt::format("{}: line {}: expected a row (a JSON object)", path, number));
  for (const char* key : {"key", "version"}) {
    if (!row.contains(key) || !row[key].is_string())
      refuse_row(path, number, fmt::format("{} (a string)", key));
  }
  return row;
}

void check_schema(const Json& row, const std::string& path, std::size_t number) {
  for (const Needed& needed : kNeeded) {
    const Json::json_pointer at(needed.path);
    if (row.contains(at) && needed.holds(row.at(at))) continue;
    std::string dotted = needed.path + 1;
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    refuse_row(path, number, fmt::format("{} ({})", dotted, needed.what));
  }
}

Json parse_row(const std::string& line, const std::string& path, std::size_t number) {
  Json row = parse_identity(line, path, number);
  check_schema(row, path, number);
  return row;
}

}  // namespace numemu::experiments
