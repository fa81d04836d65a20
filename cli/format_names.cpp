// Which names these are follows from the two tables; none is listed here.
#include "cli/format_names.hpp"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "cli/talk.hpp"
#include "emu/unit/catalogue/models.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu::cli {
namespace {

void note_name(const std::string& where, const std::string& name) {
  static std::set<std::string> said;
  try {
    const Format& here = find_format(name);
    const Format* in_units = unit::format_of_type(name);
    if (in_units == nullptr || in_units->name == here.name || !said.insert(name).second) return;
    say("numemu: note: {}: {} is {}; in names of units it is {}. Write the full name of the one "
        "you mean",
        where, name, here.name, in_units->name);
  } catch (const Error&) {  // not a format: the reader of the name reports it
  }
}

void note_members(const std::string& where, const Json& json) {
  if (json.is_array()) {
    for (const Json& element : json) note_members(where, element);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    const auto note = [&](const Json& format) {
      if (format.is_string()) note_short_names(where, format.get<std::string>());
    };
    if (!key.ends_with("format")) {
      note_members(where, value);
    } else if (value.is_array()) {
      for (const auto& one : value) note(one);
    } else {
      note(value);
    }
  }
}

}  // namespace

void note_short_names(const std::string& where, const std::string& text) {
  if (!codebook_file(text).empty()) return;
  std::string name;
  for (const char c : text + ",") {
    const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '+') {
      name += small;
    } else if (!name.empty()) {
      note_name(where, name);
      name.clear();
    }
  }
}

void note_short_names_in(const std::string& file) {
  const bool text = file.starts_with('{');  // a recipe given as JSON
  note_members(text ? "recipe" : file,
               text ? parse_json(file, "recipe") : parse_json(read_text(file), file));
}

}  // namespace numemu::cli
