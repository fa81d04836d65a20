// One walk over the events of nlohmann/json builds the value and refuses; writing goes through its
// values.
#include "formats/storage/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "formats/storage/safetensors.hpp"

namespace numemu {
namespace {

using Nlohmann = nlohmann::ordered_json;

constexpr int kOutOfRange = 406;  // nlohmann's number of "number overflow parsing"
// A value takes 40 bytes, also where its text takes two. No file of ours comes near.
constexpr std::size_t kMostValues = std::size_t{1} << 22;

class Builder : public nlohmann::json_sax<Nlohmann> {
 public:
  Builder(const std::string& where, int deepest)
      : where_(where), deepest_(static_cast<std::size_t>(deepest)) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in texts
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (!open_.back().keys.insert(key).second)
      throw Error(fmt::format("{}: duplicate key {}", where_, quote_name(key)));
    open_.back().value->items().push_back({std::move(key), Json()});
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw JsonSyntaxError(fmt::format("{}: byte {}: not valid JSON", where_, byte), byte,
                          error.id == kOutOfRange);
  }

 private:
  /// An object or a list that is not closed yet.
  struct Level {
    Json* value;
    std::set<std::string> keys;
  };

  /// Where the next value belongs: the last key has a null so far.
  Json& place() {
    if (++values_ > kMostValues)
      throw Error(fmt::format("{}: more than {} values", where_, kMostValues));
    if (open_.empty()) return root_;
    Json& parent = *open_.back().value;
    if (parent.is_object()) return parent.items().back().json;
    parent.push_back(Json());
    return parent.back();
  }
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() == deepest_)
      throw Error(fmt::format("{}: nested deeper than {} levels", where_, deepest_));
    Json& here = place();
    here = std::move(value);
    open_.push_back({&here, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& where_;
  std::size_t deepest_, values_ = 0;
  Json root_;
  std::vector<Level> open_;
};

/// Where the escape of a zero byte stands, which would end a text early wherever it is shown.
std::size_t escaped_zero(std::string_view text) {
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at + 2)) {
    if (text.substr(at).starts_with("\\u0000")) return at;
  }
  return std::string_view::npos;
}

Nlohmann nlohmann_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.text();
  if (json.is_array()) {
    Nlohmann::array_t elements;
    elements.reserve(json.size());
    for (const Json& element : json) elements.push_back(nlohmann_of(element));
    return elements;
  }
  if (!json.is_object()) return nullptr;
  Nlohmann::object_t members;
  // The map's own insertion would compare every key with all before it.
  Nlohmann::object_t::Container& pairs = members;
  pairs.reserve(json.size());
  for (const auto& [key, value] : json.items()) pairs.emplace_back(key, nlohmann_of(value));
  return members;
}

}  // namespace

Json parse_guarded(std::string_view text, const std::string& where, int deepest) {
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error(fmt::format("{}: byte {}: expected JSON, found a zero byte", where, zero));
  if (const std::size_t at = escaped_zero(text); at != std::string_view::npos) {
    const std::string_view before = text.substr(0, at);
    throw Error(fmt::format("{}: line {} column {}: expected no zero byte (\\u0000) in a text",
                            where, 1 + std::count(before.begin(), before.end(), '\n'),
                            at - (before.rfind('\n') + 1) + 1));
  }
  Builder builder(where, deepest);
  nlohmann::json_sax<Nlohmann>& events = builder;
  Nlohmann::sax_parse(text.begin(), text.end(), &events);
  return builder.take();
}

Json Json::parse(std::string_view text) { return parse_guarded(text, "JSON"); }

Json Json::parse_or_null(std::string_view text) {
  try {
    return parse(text);
  } catch (const Error&) {
    return nullptr;
  }
}

std::string Json::dump(int indent, NotUtf8 not_utf8) const {
  try {
    return nlohmann_of(*this).dump(indent, ' ', false,
                                   not_utf8 == NotUtf8::replace
                                       ? Nlohmann::error_handler_t::replace
                                       : Nlohmann::error_handler_t::strict);
  } catch (const Nlohmann::exception&) {
    throw Error("expected texts in UTF-8 where JSON is written");
  }
}

std::string ecmascript_number(double value) {
  if (!std::isfinite(value)) throw Error("JSON has no NaN and no infinity");
  if (value == 0) return "0";
  char buffer[32];
  // The shortest digits that read back as the same double, as d.ddde[+-]xx.
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific)
          .ptr;
  const std::string text(buffer, end);
  const std::size_t e = text.find('e');
  std::string digits = text.substr(0, 1) + (e > 2 ? text.substr(2, e - 2) : "");
  const int n = std::stoi(text.substr(e + 1)) + 1;  // the decimal point follows n digits
  const int k = static_cast<int>(digits.size());
  std::string out = value < 0 ? "-" : "";
  if (k <= n && n <= 21) return out + digits + std::string(n - k, '0');
  if (0 < n && n <= 21) return out + digits.substr(0, n) + "." + digits.substr(n);
  if (-6 < n && n <= 0) return out + "0." + std::string(-n, '0') + digits;
  out += digits.substr(0, 1);
  if (k > 1) out += "." + digits.substr(1);
  return out + "e" + (n > 0 ? "+" : "-") + std::to_string(std::abs(n - 1));
}

}  // namespace numemu
