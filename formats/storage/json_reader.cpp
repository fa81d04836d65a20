// Every error starts with the path of keys that leads to its value.
#include "formats/storage/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

const Json kNull;
constexpr std::streamoff kLargestText = 64 << 20;

}  // namespace

Json parse_json(const std::string& text, const std::string& where) {
  try {
    return parse_guarded(text, where);
  } catch (const JsonSyntaxError& error) {
    if (error.out_of_range) throw Error(where + ": not valid JSON: a number is too large");
    const std::size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + at, '\n');
    const std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t column = start == std::string::npos ? at + 1 : at - start;
    throw Error(fmt::format("{}: line {} column {}: not valid JSON", where, line, column));
  }
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw file_error(path + ": cannot be opened for reading");
  if (std::filesystem::is_directory(path)) throw Error(path + ": expected a file, found a folder");
  const std::streamoff size = file.tellg();
  if (size < 0 || size > kLargestText)
    throw Error(path + ": expected a text file of at most 64 MiB");
  std::string text(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(text.data(), size)) throw file_error(path + ": cannot be read");
  return text;
}

void JsonReader::fail(const std::string& what) const {
  throw Error(fmt::format("{}: expected {}", where(), what));
}

void JsonReader::require_keys(const std::vector<std::string>& known) const {
  if (!value_.is_object()) fail("an object");
  for (const auto& item : value_.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      throw Error(fmt::format("{}: {}", where(), unknown_name("key", item.key(), known)));
    }
  }
}

bool JsonReader::has(const std::string& key) const {
  return value_.is_object() && value_.contains(key);
}

bool JsonReader::is_null() const { return value_.is_null(); }

JsonReader JsonReader::member(const std::string& key) const {
  return {has(key) ? value_.at(key) : kNull, file_, path_.empty() ? key : path_ + "." + key};
}

JsonReader JsonReader::element(std::size_t i) const {
  return {value_.at(i), file_, fmt::format("{}[{}]", path_, i)};
}

std::string JsonReader::text(const std::string& fallback) const {
  if (value_.is_null()) return fallback;
  if (!value_.is_string()) fail("a string");
  return value_.get<std::string>();
}

std::int64_t JsonReader::integer(std::int64_t fallback, std::int64_t least,
                                 std::int64_t most) const {
  if (value_.is_null()) return fallback;
  // A float beyond 2^53 may be a rounded integer: what was written is not known.
  constexpr double kExact = 0x1p53;
  std::optional<std::int64_t> number;
  if (value_.is_number_float()) {
    const double real = value_.get<double>();
    if (real == std::floor(real) && std::abs(real) < kExact)
      number = static_cast<std::int64_t>(real);
  } else if (value_.is_number_unsigned()) {
    const auto whole = value_.get<std::uint64_t>();
    if (whole <= static_cast<std::uint64_t>(INT64_MAX)) number = static_cast<std::int64_t>(whole);
  } else if (value_.is_number_integer()) {
    number = value_.get<std::int64_t>();
  }
  if (!number || *number < least || *number > most)
    fail(fmt::format("an integer from {} to {}", least, most));
  return *number;
}

std::string JsonReader::one_of(const std::string& fallback, const std::vector<std::string>& known,
                               std::string_view kind) const {
  const std::string name = text(fallback);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    // Where no name is near, the message lists them already.
    const std::string message = unknown_name(kind, name, known);
    const bool listed = message.find("known: ") != std::string::npos;
    throw Error(fmt::format("{}: {}{}", where(), message,
                            listed ? "" : fmt::format(" (known: {})", joined(known, ", "))));
  }
  return name;
}

}  // namespace numemu
