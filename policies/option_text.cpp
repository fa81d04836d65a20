// Cold: a negligible share of any run (docs/build.md).
#include "policies/option_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "formats/call_text.hpp"
#include "policies/canonical_json.hpp"
#include "policies/error_at.hpp"

namespace numemu::policies {
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

Json argument_json(const Option& option, const std::string& text) {
  if (std::holds_alternative<std::string*>(option.value)) return text;
  if (std::holds_alternative<bool*>(option.value))
    return text == "true" || text == "false" ? Json(text == "true") : Json(text);
  const std::optional<double> number = number_argument(text);
  return number ? Json(*number) : Json(text);
}

}  // namespace numemu::policies
