#include "bindings/python/json.hpp"

#include <cstdint>

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

Json converted(py::handle value, const std::string& name, const std::string& path) {
  if (value.is_none()) return nullptr;
  if (PyBool_Check(value.ptr())) return value.cast<bool>();
  if (PyUnicode_Check(value.ptr())) return value.cast<std::string>();
  if (PyFloat_Check(value.ptr())) return value.cast<double>();
  if (PyDict_Check(value.ptr())) {
    Json object = Json::object();
    for (const auto& [key, member] : py::reinterpret_borrow<py::dict>(value)) {
      if (!PyUnicode_Check(key.ptr())) throw no_json(name, below(path, py::str(key)), key);
      const auto text = key.cast<std::string>();
      object[text] = converted(member, name, below(path, text));
    }
    return object;
  }
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    Json list = Json::array();
    for (const py::handle element : value)
      list.push_back(converted(element, name, below(path, std::to_string(list.size()))));
    return list;
  }
  if (PyIndex_Check(value.ptr())) {
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!number) throw py::error_already_set();
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0) return std::int64_t{whole};
    if (overflow > 0) return number.cast<std::uint64_t>();
    throw no_json(name, path, value);
  }
  if (py::hasattr(value, "__float__"))
    return py::float_(py::reinterpret_borrow<py::object>(value)).cast<double>();
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

Json json_of(py::handle value, const std::string& name) { return converted(value, name, ""); }

}  // namespace numemu::python
