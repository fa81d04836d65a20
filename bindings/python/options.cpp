#include "bindings/python/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>

#include "api/networks.hpp"
#include "api/studies.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/values.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu::python {
namespace {

/// Texts, numbers, lists of them ("a,b") and dicts ("shift=2,flip" of {"shift": 2, "flip": True}).
std::string list_text(py::handle value, const Place& place) {
  if (PyBool_Check(value.ptr()) == 0 && PyNumber_Check(value.ptr()) != 0) return py::str(value);
  std::vector<std::string> parts;
  if (PyDict_Check(value.ptr())) {
    for (const auto& [key, member] : py::reinterpret_borrow<py::dict>(value)) {
      if (member.ptr() == Py_False) continue;
      const std::string name = text_of(key, place);
      parts.push_back(member.ptr() == Py_True ? name : name + "=" + std::string(py::str(member)));
    }
    return joined(parts, ",");
  }
  if (PyList_Check(value.ptr()) == 0 && PyTuple_Check(value.ptr()) == 0)
    return text_of(value, place);
  for (const py::handle one : py::reinterpret_borrow<py::sequence>(value))
    parts.push_back(list_text(one, place));
  return joined(parts, ",");
}

void check_real(double number, api::Option::Real real, const Place& place) {
  using Real = api::Option::Real;
  const bool fine = real == Real::any ||
                    (std::isfinite(number) && (real == Real::positive   ? number > 0
                                               : real == Real::fraction ? number >= 0 && number <= 1
                                                                        : number >= 0));
  if (fine) return;
  throw usage_error(fmt::format("{}: expected a number {}, found {}", place.text(),
                                real == Real::positive   ? "above 0"
                                : real == Real::fraction ? "from 0 to 1"
                                                         : "from 0",
                                number));
}

template <class T>
void set(T& member, py::handle value, const api::Option& option, const Place& place) {
  if constexpr (kIsOptional<T>) {
    set(member.emplace(), value, option, place);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    member = whole_of(value, place, option.least, option.most);
  } else if constexpr (std::is_same_v<T, double>) {
    member = number_of(value, place);
    check_real(member, option.real, place);
  } else if constexpr (std::is_same_v<T, std::string>) {
    member = option.json && PyDict_Check(value.ptr()) ? json_of(value, option.name).dump()
                                                      : text_of(value, place);
    if (!option.words.empty()) find_named(option.name, member, option.words);
  } else {
    member = value_of<T>(value, place);
  }
}

void take(const api::Option& option, py::handle value, const Place& place) {
  if (const auto* const text = std::get_if<api::TakeText>(&option.target)) {
    (*text)(list_text(value, place));
  } else if (const auto* const flag = std::get_if<api::TakeFlag>(&option.target)) {
    if (truth_of(value, place)) (*flag)();
  } else {
    std::visit(
        [&]<class T>(const T& target) {
          if constexpr (std::is_pointer_v<T>) set(*target, value, option, place);
        },
        option.target);
  }
}

py::object standard_of(const api::Option& option) {
  if (std::holds_alternative<api::TakeFlag>(option.target)) return py::bool_(false);
  return std::visit(
      [&]<class T>(const T& target) -> py::object {
        if constexpr (std::is_same_v<T, bool*>) {
          return py::bool_(*target);
        } else if constexpr (std::is_pointer_v<T>) {
          // Of others the help tells it.
          if (option.standard) return py::cast(*target);
        }
        return py::none();
      },
      option.target);
}

/// What it takes, as annotations of Python say it.
std::string type_text(const api::Option& option) {
  constexpr const char* kText = "Union[str, PathLike[str]]";
  if (!option.words.empty()) return "Literal[\"" + joined(option.words, "\", \"") + "\"]";
  return std::visit(
      [&]<class T>(const T&) -> std::string {
        using Target = std::remove_pointer_t<T>;
        if constexpr (std::is_same_v<T, api::TakeFlag> || std::is_same_v<Target, bool>) {
          return "bool";
        } else if constexpr (std::is_same_v<T, api::TakeText>) {
          return "Union[str, float, Sequence[Any], Mapping[str, Any]]";
        } else if constexpr (std::is_same_v<Target, std::vector<std::string>>) {
          return "Union[str, Sequence[str]]";
        } else if constexpr (std::is_same_v<Target, std::string> ||
                             std::is_same_v<Target, std::optional<std::string>>) {
          return option.json ? "Union[str, PathLike[str], Mapping[str, Any]]" : kText;
        } else if constexpr (std::is_same_v<Target, double> ||
                             std::is_same_v<Target, std::optional<double>>) {
          return "float";
        } else {
          return "int";
        }
      },
      option.target);
}

constexpr std::array<std::string_view, 6> kCommands = {"eval", "infer", "train",
                                                       "tune", "sweep", "experiment"};

template <class... Request>
void visit_of(const std::function<void(const api::Option&)>& visit) {
  std::tuple<Request...> requests;
  const auto each = [&](auto& request) {
    for (const api::Option& option : api::options_of(request)) visit(option);
  };
  std::apply([&](auto&... request) { (each(request), ...); }, requests);
}

/// Every option of the command, with its default value.
void visit_options(std::string_view command, const std::function<void(const api::Option&)>& visit) {
  if (command == "eval") return visit_of<api::OpenRequest, api::EvaluateRequest>(visit);
  if (command == "infer") return visit_of<api::InferRequest>(visit);
  if (command == "train") return visit_of<api::TrainRequest>(visit);
  if (command == "tune") return visit_of<api::TuneRequest>(visit);
  if (command == "sweep") return visit_of<api::SweepRequest>(visit);
  return visit_of<api::ExperimentRequest>(visit);
}

/// The flag of the command turns it off.
bool turned_off(const api::Option& option) {
  const auto* const target = std::get_if<bool*>(&option.target);
  return target != nullptr && **target;
}

}  // namespace

void Options::read(const std::vector<api::Option>& options) {
  for (const api::Option& option : options) {
    if (option.files) continue;
    names_.push_back(option.name);
    const py::object value = given_.attr("get")(option.name);
    if (!value.is_none()) take(option, value, {command_.c_str(), option.name.c_str()});
  }
}

void Options::require_all_read() const {
  for (const auto& [key, value] : given_) {
    const std::string name = text_of(key, {command_.c_str(), "name"});
    if (std::ranges::find(names_, name) == names_.end())
      throw usage_error(command_ + ": " + unknown_name("option", name, names_));
  }
}

std::string with_names_of_python(std::string_view message) {
  static const std::map<std::string, std::string> other_names = [] {
    std::map<std::string, std::string> names;
    for (const std::string_view command : kCommands) {
      visit_options(command, [&](const api::Option& o) {
        if (!o.flag.empty()) names[o.flag] = o.name + (turned_off(o) ? "=False" : "");
      });
    }
    return names;
  }();
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::string text;
  while (!message.empty()) {
    std::size_t end = 2;
    const bool begins = text.empty() || text.back() == ' ' || text.back() == '(';
    if (!begins || !message.starts_with("--") || message.size() < 3 || !letter(message[2])) {
      text += message.front();
      message.remove_prefix(1);
      continue;
    }
    while (end < message.size() &&
           (letter(message[end]) ||
            (message[end] == '-' && end + 1 < message.size() && letter(message[end + 1]))))
      ++end;
    std::string name(message.substr(2, end - 2));
    std::ranges::replace(name, '-', '_');
    const auto found = other_names.find(std::string(message.substr(0, end)));
    text += found == other_names.end() ? name : found->second;
    message.remove_prefix(end);
  }
  return text;
}

py::list described_options(const std::string& command) {
  py::list rows;
  visit_options(command, [&](const api::Option& option) {
    if (!option.files)
      rows.append(py::make_tuple(option.name, standard_of(option), option.help, type_text(option)));
  });
  return rows;
}

}  // namespace numemu::python
