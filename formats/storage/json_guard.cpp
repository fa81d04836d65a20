// The events of nlohmann's SAX interface; only those that open, close and name are of interest.
#include "formats/storage/json_guard.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace numemu {
namespace {

using Json = nlohmann::json;

class Guard : public nlohmann::json_sax<Json> {
 public:
  Guard(int deepest, const std::function<void()>& deep,
        const std::function<void(const std::string&)>& twice)
      : deepest_(static_cast<std::size_t>(deepest)), deep_(deep), twice_(twice) {}

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
    if (!keys_.back().insert(key).second) twice_(key);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool open() {
    if (keys_.size() == deepest_) deep_();
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::size_t deepest_;
  const std::function<void()>& deep_;
  const std::function<void(const std::string&)>& twice_;
  std::vector<std::set<std::string>> keys_;  ///< of the objects that are open; empty for a list
};

}  // namespace

void guard_json(std::string_view text, int deepest, const std::function<void()>& deep,
                const std::function<void(const std::string& key)>& twice) {
  Guard guard(deepest, deep, twice);
  Json::sax_parse(text, &guard);
}

}  // namespace numemu
