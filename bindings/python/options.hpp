// Keyword arguments as the members of a request.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/python/json.hpp"
#include "bindings/python/python.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::python {

/// Reads a dict of options by name; None is an option that is not given.
class Options {
 public:
  Options(py::dict given, std::string command)
      : given_(std::move(given)), command_(std::move(command)) {}

  /// Leaves `member` as it is without the option. Throws Error naming it where it has another type.
  template <class T>
  void read(const char* name, T& member) {
    if (const py::object value = take(name); value) convert(name, value, member);
  }
  template <class T>
  void read(const char* name, std::optional<T>& member) {
    if (const py::object value = take(name); value) convert(name, value, member.emplace());
  }
  /// A recipe: a name, a file or a dict.
  void read_recipe(std::string& member) {
    const py::object value = take("recipe");
    if (!value) return;
    if (PyDict_Check(value.ptr()))
      member = python::json_of(value, "recipe").dump();
    else
      convert("recipe", value, member);
  }
  /// Throws Error for an option that was not read.
  void require_all_read() const {
    for (const auto& [key, value] : given_) {
      const auto name = key.cast<std::string>();
      if (std::ranges::find(names_, name) == names_.end())
        throw usage_error(command_ + ": " + unknown_name("option", name, names_));
    }
  }

 private:
  py::object take(const char* name) {
    names_.emplace_back(name);
    if (!given_.contains(name) || given_[name].is_none()) return {};
    return given_[name];
  }
  template <class T>
  void convert(const char* name, const py::object& value, T& member) const {
    try {
      // Paths of pathlib, too.
      if constexpr (std::is_same_v<T, std::string>)
        member = py::module_::import("os").attr("fspath")(value).template cast<std::string>();
      else
        member = value.cast<T>();
    } catch (const py::cast_error&) {
      wrong(name, value);
    } catch (const py::error_already_set& error) {
      if (!error.matches(PyExc_TypeError)) throw;
      wrong(name, value);
    }
  }
  [[noreturn]] void wrong(const char* name, const py::object& value) const {
    throw usage_error(command_ + ": " + name + ": expected another type, found " +
                      std::string(py::str(py::type::of(value).attr("__name__"))));
  }

  py::dict given_;
  std::string command_;
  std::vector<std::string> names_;
};

}  // namespace numemu::python
