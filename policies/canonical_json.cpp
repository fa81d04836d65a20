#include "policies/canonical_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// UTF-8 to UTF-16 code units: the order RFC 8785 sorts keys by (it differs from byte order above
/// U+FFFF).
std::u16string utf16(const std::string& text) {
  std::u16string units;
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t point = length == 1 ? lead : lead & (0x7f >> length);
    for (int j = 1; j < length && i + j < text.size(); ++j)
      point = point << 6 | (text[i + j] & 0x3f);
    i += length;
    if (point >= 0x10000) {
      units.push_back(static_cast<char16_t>(0xd800 + ((point - 0x10000) >> 10)));
      units.push_back(static_cast<char16_t>(0xdc00 + ((point - 0x10000) & 0x3ff)));
    } else {
      units.push_back(static_cast<char16_t>(point));
    }
  }
  return units;
}

void write(const Json& value, std::string& out) {
  if (value.is_object()) {
    std::vector<std::pair<std::u16string, std::string>> keys;
    for (const auto& item : value.items()) keys.emplace_back(utf16(item.key()), item.key());
    std::sort(keys.begin(), keys.end());
    out += '{';
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i) out += ',';
      out += Json(keys[i].second).dump();
      out += ':';
      write(value.at(keys[i].second), out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i) out += ',';
      write(value[i], out);
    }
    out += ']';
  } else if (value.is_number()) {
    out += ecmascript_number(value.get<double>());
  } else {
    out += value.dump();
  }
}

}  // namespace

std::string canonical_json(const Json& value) {
  std::string out;
  write(value, out);
  return out;
}

double significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  char buffer[48];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 std::chars_format::scientific, digits - 1)
                       .ptr;
  double rounded = value;
  std::from_chars(buffer, end, rounded);
  return rounded;
}

}  // namespace numemu::policies
