// Reads and writes the JSON form field by field; the list of fields is in description_fields.hpp.
#include "emu/unit/description/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/products.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::unit {
namespace {

constexpr int kVersion = 1;
constexpr const char* kVersionKey = "numemu_unit";
constexpr const char* kProductsKey = "products";
constexpr std::string_view kFractionKey = "alignment.fraction_bits";
constexpr std::int64_t kLargestNumber = std::int64_t{1} << 30;

/// Runs `read` and puts the key in front of an Error from below (an unknown format or rounding).
template <class Read>
auto at(const JsonReader& key, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", key.where(), error.what()));
  }
}

std::string text(const JsonReader& value) {
  if (value.is_null()) value.fail("a string");
  return value.text("");
}

void read(const JsonReader& value, std::string& field) { field = text(value); }

void read(const JsonReader& value, const Format*& field) {
  field = nullptr;
  if (value.is_null()) return;
  const std::string name = text(value);
  field = at(value, [&] { return &find_format(name); });
}

void read(const JsonReader& value, int& field) {
  // An absent key never comes here: null is not a number.
  if (value.is_null()) value.fail("an integer");
  field = static_cast<int>(value.integer(0, -kLargestNumber, kLargestNumber));
}

void read(const JsonReader& value, bool& field) {
  if (!value.value().is_boolean()) value.fail("true or false");
  field = value.value().get<bool>();
}

void read(const JsonReader& value, std::optional<int>& field) {
  field.reset();
  if (!value.is_null()) read(value, field.emplace());
}

void read(const JsonReader& value, Rounding& field) {
  const std::string name = text(value);
  field = at(value, [&] { return parse_rounding(name); });
}

void read(const JsonReader& value, RoundingMode& field) {
  Rounding rounding;
  read(value, rounding);
  if (rounding.stochastic()) value.fail("a rounding without random bits");
  field = rounding.mode;
}

void read(const JsonReader& value, Overflow& field) {
  const std::string name = text(value);
  field = at(value, [&] { return parse_overflow(name); });
}

void read(const JsonReader& value, std::uint64_t& field) {
  const std::string digits = text(value);
  const char* end = digits.data() + digits.size();
  const char* begin = digits.starts_with("0x") ? digits.data() + 2 : end;
  const auto [stop, error] = std::from_chars(begin, end, field, 16);
  if (error != std::errc{} || stop != end) value.fail("a code in hexadecimal, as in \"0x7fff\"");
}

void read(const JsonReader& value, Sparsity& field) {
  field = {};
  if (value.is_null()) return;
  const std::string pattern = text(value);
  const char* end = pattern.data() + pattern.size();
  const auto kept = std::from_chars(pattern.data(), end, field.kept);
  const bool colon = kept.ec == std::errc{} && kept.ptr != end && *kept.ptr == ':';
  const auto group = std::from_chars(colon ? kept.ptr + 1 : end, end, field.group);
  if (group.ec != std::errc{} || group.ptr != end)
    value.fail("N:M, as in \"2:4\", or null for dense");
}

template <Named T>
void read(const JsonReader& value, T& field) {
  const auto names = names_of(T{});
  const std::vector<std::string> known(names.begin(), names.end());
  const std::string name = value.one_of(text(value), known, "value");
  field = static_cast<T>(std::find(known.begin(), known.end(), name) - known.begin());
}

Json json_of(int number) { return number; }
Json json_of(bool flag) { return flag; }
Json json_of(const std::optional<int>& number) { return number ? Json(*number) : Json(); }
Json json_of(const Format* format) { return format != nullptr ? Json(format->name) : Json(); }
template <class T>
Json json_of(const T& field) {
  return text_of(field);
}

/// "accumulator" and "bits"; "" and "core".
std::pair<std::string, std::string> split(std::string_view key) {
  const std::size_t point = key.find('.');
  if (point == key.npos) return {"", std::string(key)};
  return {std::string(key.substr(0, point)), std::string(key.substr(point + 1))};
}

/// The keys of the object and of every object in it must be known.
void require_known_keys(const JsonReader& root) {
  std::vector<std::string> top{kVersionKey};
  std::vector<std::pair<std::string, std::vector<std::string>>> objects;
  const UnitDescription any;
  for_each_field(any, [&](const char* key, const auto&) {
    const auto [object, member] = split(key);
    if (object.empty()) {
      top.push_back(member);
    } else if (objects.empty() || objects.back().first != object) {
      top.push_back(object);
      objects.push_back({object, {member}});
    } else {
      objects.back().second.push_back(member);
    }
  });
  top.emplace_back(kProductsKey);
  root.require_keys(top);
  for (const auto& [object, members] : objects) {
    if (root.has(object)) root.member(object).require_keys(members);
  }
}

/// The code of NaN where none is given: the quiet one of D, 0 where there is none.
std::uint64_t usual_nan(const UnitDescription& u) {
  const Format* d = result_format(u);
  return d != nullptr && d->has_nan() ? d->nan_code() : 0;
}

UnitDescription read_fields(const JsonReader& root, const std::string& folder) {
  require_known_keys(root);
  if (!root.has(kVersionKey)) root.fail(fmt::format("a key '{}' with the version 1", kVersionKey));
  if (root.member(kVersionKey).value() != kVersion) root.member(kVersionKey).fail("version 1");
  if (!root.has("core")) root.fail("a key 'core'");
  UnitDescription u;
  for_each_field(u, [&](const char* key, auto& field) {
    const auto [object, member] = split(key);
    const JsonReader parent = object.empty() ? root : root.member(object);
    if (parent.has(member)) read(parent.member(member), field);
  });
  // What a fused unit keeps is what it is: no number would be a neutral default.
  const bool aligned = root.has("alignment") && root.member("alignment").has("fraction_bits");
  if (u.core == CoreKind::fused && !aligned)
    root.fail(fmt::format("a key '{}' with core fused: bits kept below the largest exponent",
                          kFractionKey));
  if (!root.has("nan_code")) u.nan_code = usual_nan(u);
  if (root.has(kProductsKey)) {
    const JsonReader products = root.member(kProductsKey);
    const std::string path = (std::filesystem::path(folder) / text(products)).string();
    u.products = at(products, [&] { return read_products(u, path); });
  }
  return u;
}

}  // namespace

UnitDescription parse_description(const std::string& text, const std::string& where,
                                  const std::string& folder) {
  const Json json = parse_json(text, where);
  UnitDescription u = read_fields(JsonReader(json, where), folder);
  try {
    check_description(u);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", where, error.what()));
  }
  return u;
}

UnitDescription read_description(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return parse_description(read_text(path), path, folder);
}

std::string description_json(const UnitDescription& u, const std::string& products_file) {
  check_description(u);
  const std::vector<std::string> changed = changed_fields(u);
  const auto differs = [&](std::string_view key) {
    return std::find(changed.begin(), changed.end(), key) != changed.end();
  };
  Json out = {{kVersionKey, kVersion}};
  for_each_field(u, [&](const std::string& key, const auto& field) {
    const bool always = key == "core" || key == "k" || key == "group" ||
                        (key == kFractionKey && u.core == CoreKind::fused);
    const bool written = key == "nan_code" ? u.nan_code != usual_nan(u) : always || differs(key);
    if (!written) return;
    const auto [object, member] = split(key);
    (object.empty() ? out : out[object])[member] = json_of(field);
  });
  if (u.products != nullptr) out[kProductsKey] = products_file;
  return out.dump(2) + "\n";
}

void write_description(const UnitDescription& u, const std::string& path) {
  std::filesystem::path products = path;
  products.replace_extension(".products.npy");
  const std::string json = description_json(u, products.filename().string());
  if (u.products != nullptr) write_products(u, products.string());
  write_atomically(path, {json});
}

}  // namespace numemu::unit
