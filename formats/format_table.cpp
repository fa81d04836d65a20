// The named formats, from formats.def.
#include "formats/format_table.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace numemu {
namespace {

struct Row {
  Format format;
  std::string aliases;  // separated by spaces
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define NUMEMU_FLOAT(name, E, M, bias, specials, field_zero, is_signed, shift, aliases, source, \
                     doc)                                                                       \
  Row{{#name, Kind::floating, is_signed, (is_signed ? 1 : 0) + E + M, E, M, bias,               \
       Specials::specials, FieldZero::field_zero, shift, source, doc},                          \
      aliases},
#define NUMEMU_INTEGER(name, bits, is_signed, aliases, source, doc)                               \
  Row{{#name, Kind::integer, is_signed, bits, 0, 0, 0, Specials::finite, FieldZero::subnormal, 0, \
       source, doc},                                                                              \
      aliases},
#define NUMEMU_SIGN(name, aliases, source, doc)                                                  \
  Row{{#name, Kind::sign, true, 1, 0, 0, 0, Specials::finite, FieldZero::scale, 0, source, doc}, \
      aliases},
#include "formats/formats.def"
#undef NUMEMU_FLOAT
#undef NUMEMU_INTEGER
#undef NUMEMU_SIGN
  };
  return table;
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> list;
  for (std::size_t at = words.find_first_not_of(' '); at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    list.push_back(words.substr(at, end - at));
    at = words.find_first_not_of(' ', end);
  }
  return list;
}

using Index = std::map<std::string, const Format*, std::less<>>;

const Index& index_of_names() {
  static const Index index = [] {
    Index map;
    for (const Row& row : rows()) {
      map.emplace(row.format.name, &row.format);
      for (const std::string& alias : split(row.aliases)) map.emplace(alias, &row.format);
    }
    return map;
  }();
  return index;
}

}  // namespace

const Format* named_format(std::string_view name) {
  const auto found = index_of_names().find(name);
  return found == index_of_names().end() ? nullptr : found->second;
}

std::vector<std::string> names_of_formats() {
  std::vector<std::string> names;
  for (const auto& [name, format] : index_of_names()) names.push_back(name);
  return names;
}

const Format& float32() {
  static const Format& format = *named_format("float32");
  return format;
}

const std::vector<const Format*>& named_formats() {
  static const std::vector<const Format*> list = [] {
    std::vector<const Format*> pointers;
    for (const Row& row : rows()) pointers.push_back(&row.format);
    return pointers;
  }();
  return list;
}

std::vector<std::string> aliases_of(const Format& format) {
  for (const Row& row : rows())
    if (row.format.name == format.name) return split(row.aliases);
  return {};
}

}  // namespace numemu
