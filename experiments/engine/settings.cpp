#include "experiments/engine/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <type_traits>

#include "emu/net/data/load_dataset.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/role_json.hpp"

namespace numemu::experiments {
namespace {

/// What messages call a number.
template <class Number>
constexpr const char* kNumber = std::is_integral_v<Number> ? "whole number" : "number";

/// The number that a text is and nothing else; none outside [least, most].
template <class Number>
std::optional<Number> number_in(const std::string& text, Number least, Number most) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [read, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || read != end || !(number >= least && number <= most)) return {};
  return number;
}

template <class Number>
Number setting_number(const Settings& settings, const std::string& key, Number least, Number most) {
  const std::string& text = settings.text(key);
  if (const std::optional<Number> number = number_in(text, least, most)) return *number;
  throw usage_error(fmt::format("{}: expected a {} in {} to {}, not '{}'", settings.named(key),
                                kNumber<Number>, least, most, text));
}

template <class Number>
std::vector<Number> setting_numbers(const Settings& settings, const std::string& key,
                                    const Takes& takes) {
  const auto least = static_cast<Number>(takes.least), most = static_cast<Number>(takes.most);
  std::vector<Number> numbers;
  for (const std::string& item : settings.list(key)) {
    const std::optional<Number> number = number_in(item, least, most);
    if (!number)
      throw usage_error(fmt::format("{}: expected {}s from {} to {}, got '{}'", settings.named(key),
                                    kNumber<Number>, least, most, item));
    numbers.push_back(*number);
  }
  return numbers;
}

template <class Item>
void require_distinct(const std::vector<Item>& items, const std::string& setting) {
  for (auto item = items.begin(); item != items.end(); ++item) {
    if (std::find(items.begin(), item, *item) != item)
      throw usage_error(
          fmt::format("{}: expected each value once, found {} twice", setting, *item));
  }
}

template <class Number>
void check_setting_numbers(const Settings& settings, const std::string& key, const Takes& takes) {
  if (takes.list) {
    require_distinct(setting_numbers<Number>(settings, key, takes), settings.named(key));
  } else {
    setting_number(settings, key, static_cast<Number>(takes.least),
                   static_cast<Number>(takes.most));
  }
}

void check_network(const std::string& name) {
  const std::string file = net::name_and_file(name).second;
  if (net::names_onnx_file(name) || file.find('.') != std::string::npos) {
    const std::string& path = net::names_onnx_file(name) ? name : file;
    if (!std::filesystem::exists(path)) throw Error("no file " + path);
    return;
  }
  net::net_kind(name);
}
void check_network_or_none(const std::string& name) {
  if (name != "-") check_network(name);
}

void check_data_set(const std::string& name) { net::check_dataset_name(name); }

void check_optimizer(const std::string& name) { net::find_optimizer(name); }

}  // namespace

Takes takes_network() { return text_of(check_network); }
Takes takes_network_or_none() { return text_of(check_network_or_none); }
Takes takes_networks() { return list_of(check_network); }
Takes takes_networks_or_none() { return list_of(check_network_or_none); }
Takes takes_data_set() { return text_of(check_data_set); }
Takes takes_optimizer() { return text_of(check_optimizer); }
Takes takes_optimizers() { return list_of(check_optimizer); }

Setting data_setting(const std::string& of) {
  return {"data",          "glyphs", "glyphs", "glyphs", of.empty() ? "data set" : "data set " + of,
          takes_data_set()};
}

Setting granularity_setting() {
  return {"granularity",
          "channel",
          "channel",
          "channel",
          "scales of weights whose format is no block format: channel (one each) or tensor",
          text_of(check_granularity)};
}

Size parse_size(std::string_view text) {
  if (text == "smoke") return Size::smoke;
  if (text == "default") return Size::standard;
  if (text == "full") return Size::full;
  throw Error(unknown_name("size", text, {"smoke", "default", "full"}));
}

Settings::Settings(const std::vector<Setting>& settings, Size size,
                   const std::vector<std::string>& overrides, GivenBy given_by)
    : given_by_(given_by) {
  std::vector<std::string> known;
  for (const Setting& setting : settings) {
    known.emplace_back(setting.key);
    values_[setting.key] = size == Size::smoke      ? setting.smoke
                           : size == Size::standard ? setting.standard
                                                    : setting.full;
  }
  for (const std::string& assignment : overrides) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos)
      throw usage_error(fmt::format("--set: expected key=value, not '{}'", assignment));
    const std::string key = assignment.substr(0, equals);
    if (!values_.contains(key)) throw usage_error("--set: " + unknown_name("key", key, known));
    values_[key] = assignment.substr(equals + 1);
  }
  for (const Setting& setting : settings) {
    takes_[setting.key] = setting.takes;
    check(setting.key, setting.takes);
  }
}

std::string setting_name(std::string key, GivenBy given_by) {
  if (given_by == GivenBy::set) return "--set: " + key;
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

void Settings::check(const std::string& key, const Takes& takes) const {
  if (takes.empty && text(key).empty()) return;
  if (takes.kind == Takes::Kind::whole) {
    check_setting_numbers<std::int64_t>(*this, key, takes);
  } else if (takes.kind == Takes::Kind::real) {
    check_setting_numbers<double>(*this, key, takes);
  } else if (takes.list) {
    require_distinct(list(key), named(key));
  }
  if (takes.check == nullptr) return;
  for (const std::string& item : takes.list ? list(key) : std::vector{text(key)}) {
    at(named(key), ErrorKind::usage, [&] { takes.check(item); });
  }
}

std::int64_t Settings::integer(const std::string& key) const {
  const Takes& takes = takes_.at(key);
  return integer(key, static_cast<std::int64_t>(takes.least),
                 static_cast<std::int64_t>(takes.most));
}
double Settings::number(const std::string& key) const {
  return number(key, takes_.at(key).least, takes_.at(key).most);
}
std::vector<double> Settings::numbers(const std::string& key) const {
  if (text(key).empty()) return {};
  return setting_numbers<double>(*this, key, takes_.at(key));
}
std::vector<std::int64_t> Settings::whole_numbers(const std::string& key) const {
  return setting_numbers<std::int64_t>(*this, key, takes_.at(key));
}

std::int64_t Settings::integer(const std::string& key, std::int64_t least,
                               std::int64_t most) const {
  return setting_number(*this, key, least, most);
}
double Settings::number(const std::string& key, double least, double most) const {
  return setting_number(*this, key, least, most);
}

std::vector<std::string> Settings::list(const std::string& key) const {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : text(key)) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      items.emplace_back();
    } else if (c != ' ') {
      items.back() += c;
    }
  }
  for (const std::string& item : items) {
    if (item.empty())
      throw usage_error(
          fmt::format("{}: expected names separated by commas, not '{}'", named(key), text(key)));
  }
  return items;
}

void check_granularity(const std::string& text) {
  if (text != "channel" && text != "tensor")
    throw Error(unknown_name("granularity", text, {"channel", "tensor"}));
}

const std::string& weight_granularity(const Settings& settings) {
  return settings.text("granularity");
}

bool set_weight_granularity(Json& role, const char* name, const std::string& granularity,
                            const std::string& where) {
  if (std::string_view(name) != "weight" || role.is_null()) return false;
  const Json bare = {{"format", role["format"]}};
  const JsonReader reader(bare, where);
  if (policies::stays_float32(reader) ||
      policies::read_role(reader, policies::role_row(name)).block != nullptr)
    return false;
  role["granularity"] = granularity;
  return true;
}

}  // namespace numemu::experiments
