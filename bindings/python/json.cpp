#include "bindings/python/json.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "formats/error.hpp"

namespace numemu::python {
namespace {

/// Why a value is none of JSON's, where it stands.
Error no_json(const std::string& name, const std::string& path, py::handle value) {
  const std::string where = path.empty() ? name : name + ": " + path;
  return Error(where + ": expected a dict, list, text, number, bool or None, found " +
               std::string(py::str(py::type::of(value).attr("__name__"))));
}

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

constexpr int kDeepest = 64;  // as texts of JSON may be nested

Json converted(py::handle value, const std::string& name, const std::string& path, int depth) {
  if (depth > kDeepest)
    throw Error(fmt::format("{}: nested deeper than {} levels", name, kDeepest));
  if (value.is_none()) return nullptr;
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  if (PyUnicode_Check(value.ptr())) {
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (bytes != nullptr) return std::string(bytes, static_cast<std::size_t>(size));
    PyErr_Clear();
    throw Error(name + (path.empty() ? "" : ": " + path) + ": expected a text of Unicode");
  }
  if (PyFloat_Check(value.ptr())) return PyFloat_AS_DOUBLE(value.ptr());
  if (PyDict_Check(value.ptr())) {
    Json object = Json::object();
    for (const auto& [key, member] : py::reinterpret_borrow<py::dict>(value)) {
      if (!PyUnicode_Check(key.ptr())) throw no_json(name, below(path, py::str(key)), key);
      const auto text = converted(key, name, path, depth).get<std::string>();
      object[text] = converted(member, name, below(path, text), depth + 1);
    }
    return object;
  }
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    Json list = Json::array();
    for (const py::handle element : value)
      list.push_back(converted(element, name, below(path, std::to_string(list.size())), depth + 1));
    return list;
  }
  // Arrays as lists, their scalars as numbers.
  if (py::hasattr(value, "tolist") && py::hasattr(value, "dtype"))
    return converted(value.attr("tolist")(), name, path, depth + 1);
  if (PyIndex_Check(value.ptr())) {
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0) return std::int64_t{whole};
    const unsigned long long large = overflow < 0 ? 0 : PyLong_AsUnsignedLongLong(number.ptr());
    if (overflow > 0 && PyErr_Occurred() == nullptr) return std::uint64_t{large};
    PyErr_Clear();
    throw Error(fmt::format("{}{}: expected a whole number of 64 bits", name,
                            path.empty() ? "" : ": " + path));
  }
  const double real = PyFloat_AsDouble(value.ptr());
  if (real != -1 || PyErr_Occurred() == nullptr) return real;
  PyErr_Clear();
  throw no_json(name, path, value);
}

}  // namespace

py::object python_of(const Json& json) {
  if (json.is_null()) return py::none();
  if (json.is_boolean()) return py::bool_(json.get<bool>());
  if (json.is_string()) return py::str(json.text());
  if (json.is_number_unsigned()) return py::int_(json.get<std::uint64_t>());
  if (json.is_number_integer()) return py::int_(json.get<std::int64_t>());
  if (json.is_number()) return py::float_(json.get<double>());
  if (json.is_array()) {
    py::list list;
    for (const Json& element : json) list.append(python_of(element));
    return list;
  }
  py::dict dict;
  for (const auto& [key, member] : json.items()) dict[py::str(key)] = python_of(member);
  return dict;
}

Json json_of(py::handle value, const std::string& name) { return converted(value, name, "", 0); }

}  // namespace numemu::python
