#include "experiments/engine/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

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

/// The items of a setting as numbers in [least, most]; `kind` is what messages call them.
template <class Number>
std::vector<Number> parsed(const std::vector<std::string>& items, const std::string& setting,
                           const char* kind, Number least, Number most) {
  std::vector<Number> numbers;
  for (const std::string& item : items) {
    Number number = 0;
    const auto [end, failure] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (failure != std::errc() || end != item.data() + item.size() ||
        !(number >= least && number <= most)) {
      throw usage_error(
          fmt::format("{}: expected {} from {} to {}, got '{}'", setting, kind, least, most, item));
    }
    numbers.push_back(number);
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
    const auto least = static_cast<std::int64_t>(takes.least),
               most = static_cast<std::int64_t>(takes.most);
    takes.list ? require_distinct(whole_numbers(key, least, most), named(key))
               : void(integer(key, least, most));
  } else if (takes.kind == Takes::Kind::real) {
    takes.list ? require_distinct(numbers(key, takes.least, takes.most), named(key))
               : void(number(key, takes.least, takes.most));
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
  return numbers(key, takes_.at(key).least, takes_.at(key).most);
}
std::vector<std::int64_t> Settings::whole_numbers(const std::string& key) const {
  const Takes& takes = takes_.at(key);
  return whole_numbers(key, static_cast<std::int64_t>(takes.least),
                       static_cast<std::int64_t>(takes.most));
}

std::int64_t Settings::integer(const std::string& key, std::int64_t least,
                               std::int64_t most) const {
  const std::string& value = text(key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least ||
      number > most) {
    throw usage_error(fmt::format("{}: expected a whole number in {} to {}, not '{}'", named(key),
                                  least, most, value));
  }
  return number;
}

double Settings::number(const std::string& key, double least, double most) const {
  const std::string& value = text(key);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool read = error == std::errc() && end == value.data() + value.size();
  if (!read || !(number >= least && number <= most)) {  // NaN is in no range
    throw usage_error(
        fmt::format("{}: expected a number in {} to {}, not '{}'", named(key), least, most, value));
  }
  return number;
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

std::vector<double> Settings::numbers(const std::string& key, double least, double most) const {
  return parsed(list(key), named(key), "numbers", least, most);
}

std::vector<std::int64_t> Settings::whole_numbers(const std::string& key, std::int64_t least,
                                                  std::int64_t most) const {
  return parsed(list(key), named(key), "whole numbers", least, most);
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
