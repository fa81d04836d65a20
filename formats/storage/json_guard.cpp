// The events of nlohmann's SAX interface; only those that open, close and name are of interest.
#include "formats/storage/json_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "formats/error.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu {
namespace {

using Json = nlohmann::json;

class Guard : public nlohmann::json_sax<Json> {
 public:
  Guard(const std::string& where, int deepest)
      : where_(where), deepest_(static_cast<std::size_t>(deepest)) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    throw Error(fmt::format("{}: key {} stands twice in one object", where_, quote_name(key)));
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool open() {
    if (keys_.size() == deepest_)
      throw Error(fmt::format("{}: nested deeper than {} levels", where_, deepest_));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string& where_;
  std::size_t deepest_;
  std::vector<std::set<std::string>> keys_;  ///< of the objects that are open; empty for a list
};

/// The position of an escaped zero byte, which would end a text early wherever it is shown.
std::size_t escaped_zero(std::string_view text) {
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at + 2)) {
    if (text.substr(at).starts_with("\\u0000")) return at;
  }
  return std::string_view::npos;
}

}  // namespace

void guard_json(std::string_view text, const std::string& where, int deepest) {
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error(fmt::format("{}: byte {}: expected JSON, found a zero byte", where, zero));
  if (const std::size_t at = escaped_zero(text); at != std::string_view::npos) {
    const std::string_view before = text.substr(0, at);
    throw Error(fmt::format("{}: line {} column {}: expected no zero byte (\\u0000) in a text",
                            where, 1 + std::count(before.begin(), before.end(), '\n'),
                            at - (before.rfind('\n') + 1) + 1));
  }
  Guard guard(where, deepest);
  Json::sax_parse(text, &guard);
}

}  // namespace numemu
