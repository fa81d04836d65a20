#include "formats/storage/fields.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

/// In the path of an element that stands behind those of its list.
constexpr const char* kBehind = "[]";

}  // namespace

void put_back(Json& json, const UnknownMember& member) {
  Json* at = &json;
  for (const std::string& part : member.path) {
    if (part == kBehind) {
      at->push_back(Json());
      at = &at->back();
    } else {
      at = at->is_array() ? &at->at(std::stoul(part.substr(1))) : &(*at)[part];
    }
  }
  *at = member.value;
}

std::string FieldLog::dotted() const {
  std::string text;
  for (const std::string& part : path)
    text += (text.empty() || part.starts_with('[') ? "" : ".") + part;
  return text;
}

void FieldLog::keep(const std::string& key, const Json& value) {
  path.push_back(key);
  members.push_back({path, value});
  path.pop_back();
}

void FieldLog::keep_element(const Json& value) {
  members.push_back({path, value});
  members.back().path.back() = kBehind;
}

void FieldLog::miss(const char* expected) {
  if (missing.empty()) missing = fmt::format("{} ({})", dotted(), expected);
}

void FieldLog::keep_unknown(const std::string& key, const Json& value,
                            const std::vector<std::string>& keys) {
  if (std::ranges::find(keys, key) != keys.end()) return;
  keep(key, value);
  if (!unknown.empty() || (!path.empty() && path.front() == open)) return;
  const std::string at = dotted();
  unknown = (at.empty() ? "" : at + ": ") + unknown_name("key", key, keys);
}

void FieldLog::fail(const char* expected) const {
  std::string text = where;
  for (const std::string& part : path)
    if (!part.starts_with('[')) text += ": " + part;
  throw Error(fmt::format("{}: expected {}", text, expected));
}

namespace fields_detail {

std::string bits_text(double value) {
  return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value));
}

bool read_bits(const Json& json, double& value) {
  constexpr std::size_t kDigits = 16;
  const std::string digits = json.is_string() ? json.text() : "";
  std::uint64_t bits = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, bits, 16);
  if (digits.size() != kDigits || error != std::errc() || stop != end) return false;
  value = std::bit_cast<double>(bits);
  return true;
}

}  // namespace fields_detail
}  // namespace numemu
