// Values of Python as those that api/ takes: arguments of calls and options of requests.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings/python/python.hpp"

namespace numemu::python {

/// "train: epochs": what errors about a value begin with. No text is made before there is an error.
struct Place {
  const char* call;
  const char* name;
  std::string text() const;
};

/// Throws Error: "PLACE: expected WHAT, found float".
[[noreturn]] void wrong_value(const Place&, const std::string& expected, py::handle found);

/// Texts, and paths of os.PathLike.
std::string text_of(py::handle, const Place&);
/// Of Python's integers and NumPy's, which bool is none of.
std::int64_t whole_of(py::handle, const Place&, std::int64_t least, std::int64_t most);
std::uint64_t unsigned_of(py::handle, const Place&);
/// Of Python's numbers and NumPy's.
double number_of(py::handle, const Place&);
/// Of bool, NumPy's too, 0 and 1.
bool truth_of(py::handle, const Place&);

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// None is an optional without a value. Throws Error for another type, or a number beyond it.
template <class T>
T value_of(py::handle value, const Place& place) {
  if constexpr (kIsOptional<T>) {
    if (value.is_none()) return std::nullopt;
    return value_of<typename T::value_type>(value, place);
  } else if constexpr (std::is_same_v<T, py::object>) {
    return py::reinterpret_borrow<py::object>(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text_of(value, place);
  } else if constexpr (std::is_same_v<T, bool>) {
    return truth_of(value, place);
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return unsigned_of(value, place);
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(whole_of(value, place, Limits::min(), Limits::max()));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number_of(value, place));
  } else {
    static_assert(std::is_same_v<T, std::vector<std::string>>);
    // One text is a list of one.
    if (PyUnicode_Check(value.ptr())) return {text_of(value, place)};
    if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))
      wrong_value(place, "a list of texts", value);
    T texts;
    for (const py::handle one : py::reinterpret_borrow<py::sequence>(value))
      texts.push_back(text_of(one, place));
    return texts;
  }
}

}  // namespace numemu::python
