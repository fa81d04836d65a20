// Reading JSON objects strictly: unknown keys, wrong types and unknown names are errors with their
// position.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu {

/// Parses text as parse_guarded() does; a syntax error names file, line and column.
Json parse_json(const std::string& text, const std::string& where);
/// The text of a file; throws Error naming it. At most 64 MiB.
std::string read_text(const std::string& path);

/// A JSON value and the path that leads to it ("recipe.json: roles.weight").
class JsonReader {
 public:
  JsonReader(const Json& value, std::string file) : value_(value), file_(std::move(file)) {}

  const Json& value() const { return value_; }
  std::string where() const { return path_.empty() ? file_ : file_ + ": " + path_; }
  /// Throws unless the value is an object whose keys are all among `known` (the nearest is
  /// offered).
  void require_keys(const std::vector<std::string>& known) const;
  bool has(const std::string& key) const;
  /// The member (null when absent).
  JsonReader member(const std::string& key) const;
  /// Another value in this one's place: a value merged from several.
  JsonReader replaced_by(const Json& value) const { return {value, file_, path_}; }
  /// Element i of an array.
  JsonReader element(std::size_t i) const;
  bool is_null() const;

  std::string text(const std::string& fallback) const;  ///< fallback when the value is null
  /// Exact: no number is rounded to one in range.
  std::int64_t integer(std::int64_t fallback, std::int64_t least, std::int64_t most) const;
  /// One of `known`, else an Error that names the policies there are.
  std::string one_of(const std::string& fallback, const std::vector<std::string>& known,
                     std::string_view kind) const;
  /// Throws Error "WHERE: expected WHAT".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  JsonReader(const Json& value, std::string file, std::string path)
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}
  const Json& value_;
  std::string file_, path_;
};

/// What `read` gives; an Error of it (an unknown format, rounding, unit) names the key at fault.
template <class Read>
decltype(auto) at(const JsonReader& key, Read&& read) {
  return at(key.where(), read);
}

}  // namespace numemu
