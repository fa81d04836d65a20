#include "formats/storage/options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string_view>

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 14 deduces no aggregate

std::string range_of(const Option& option) {
  return fmt::format("{} to {}", ecmascript_number(option.least), ecmascript_number(option.most));
}

void read_number(const JsonReader& key, const Option& option, double& value) {
  const double given = key.value().is_number() ? key.value().get<double>() : NAN;
  if (!(given >= option.least && given <= option.most))
    key.fail("a number from " + range_of(option));
  value = given;
}

/// An argument of a call as the JSON value it stands for.
Json argument_json(const Option& option, const std::string& text) {
  if (std::holds_alternative<std::string*>(option.value)) return text;
  if (std::holds_alternative<bool*>(option.value))
    return text == "true" || text == "false" ? Json(text == "true") : Json(text);
  const std::optional<double> number = number_argument(text);
  return number ? Json(*number) : Json(text);
}

const Option& option_named(const std::string& key, const std::vector<Option>& known,
                           const std::string& where, const std::string& text) {
  std::vector<std::string> names;
  for (const Option& one : known) {
    if (one.key == key) return one;
    names.emplace_back(one.key);
  }
  throw Error(names.empty() ? fmt::format("{}: expected no options, found '{}'", where, text)
                            : fmt::format("{}: {}", where, unknown_name("option", key, names)));
}

}  // namespace

void read_option(const JsonReader& key, const Option& option) {
  if (key.is_null()) return;
  std::visit(Overloaded{[&](double* value) { read_number(key, option, *value); },
                        [&](std::int64_t* value) {
                          *value = key.integer(*value, static_cast<std::int64_t>(option.least),
                                               static_cast<std::int64_t>(option.most));
                        },
                        [&](bool* value) {
                          if (!key.value().is_boolean()) key.fail("true or false");
                          *value = key.value().get<bool>();
                        },
                        [&](std::string* value) {
                          *value =
                              option.kind != nullptr
                                  ? at(key, [&] { return option.kind->canonical(key.text("")); })
                                  : key.one_of(*value, option.choices, option.key);
                        }},
             option.value);
}

Json option_json(const Option& option) {
  return std::visit([](const auto* value) { return Json(*value); }, option.value);
}

std::string option_text(const Option& option) {
  return std::visit(
      Overloaded{[](const double* value) { return ecmascript_number(*value); },
                 [](const std::int64_t* value) { return std::to_string(*value); },
                 [](const bool* value) { return std::string(*value ? "true" : "false"); },
                 [](const std::string* value) { return *value; }},
      option.value);
}

void read_arguments(const CallText& call, const std::vector<Option>& known,
                    const std::string& where) {
  std::set<std::string_view> given;
  for (std::size_t place = 0; place < call.arguments.size(); ++place) {
    std::string text = call.arguments[place];
    const Option* option = place < known.size() ? &known[place] : nullptr;
    // Not that of a call within.
    if (const std::size_t equals = text.find_first_of("=(");
        equals != text.npos && text[equals] == '=') {
      option = &option_named(text.substr(0, equals), known, where, text);
      text.erase(0, equals + 1);
    }
    if (option == nullptr) {
      throw Error(known.empty() ? fmt::format("{}: expected no options, found '{}'", where, text)
                                : fmt::format("{}: expected at most {} option{}, found '{}'", where,
                                              known.size(), known.size() == 1 ? "" : "s", text));
    }
    if (!given.insert(option->key).second)
      throw Error(fmt::format("{}: expected {} once", where, option->key));
    const Json value = argument_json(*option, text);
    read_option(JsonReader(value, fmt::format("{}: {}", where, option->key)), *option);
  }
}

std::string call_text(std::string_view name, OptionSet& given, OptionSet& usual) {
  std::vector<std::string> texts, defaults;
  for (const Option& option : given.list()) texts.push_back(option_text(option));
  for (const Option& option : usual.list()) defaults.push_back(option_text(option));
  while (!texts.empty() && texts.back() == defaults.at(texts.size() - 1)) texts.pop_back();
  if (texts.empty()) return std::string(name);
  return fmt::format("{}({})", name, joined(texts, ","));
}

}  // namespace numemu
