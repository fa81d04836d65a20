#include "bindings/python/values.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"

namespace numemu::python {
namespace {

std::string type_of(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__"));
}

/// The value by operator.index(), or nothing where it is no integer.
py::object index_of(py::handle value) {
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) return {};
  auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!whole) PyErr_Clear();  // of an array of several elements
  return whole;
}

}  // namespace

std::string Place::text() const { return fmt::format("{}: {}", call, name); }

void wrong_value(const Place& place, const std::string& expected, py::handle found) {
  throw usage_error(
      fmt::format("{}: expected {}, found {}", place.text(), expected, type_of(found)));
}

std::string text_of(py::handle value, const Place& place) {
  py::object text = py::reinterpret_borrow<py::object>(value);
  if (!PyUnicode_Check(value.ptr())) {
    text = py::reinterpret_steal<py::object>(PyOS_FSPath(value.ptr()));
    if (!text) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
      PyErr_Clear();
      wrong_value(place, "a text", value);
    }
    if (PyBytes_Check(text.ptr())) return text.cast<std::string>();
  }
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  // Bytes of a file's name that are no UTF-8, as os.listdir() gives them.
  PyErr_Clear();
  const auto encoded = py::reinterpret_steal<py::object>(PyUnicode_EncodeFSDefault(text.ptr()));
  if (!encoded) {
    PyErr_Clear();
    throw usage_error(place.text() + ": expected a text of Unicode");
  }
  return encoded.cast<std::string>();
}

std::int64_t whole_of(py::handle value, const Place& place, std::int64_t least, std::int64_t most) {
  const py::object whole = index_of(value);
  if (!whole) wrong_value(place, "a whole number", value);
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow != 0 || number < least || number > most)
    throw usage_error(fmt::format("{}: expected a whole number from {} to {}, found {}",
                                  place.text(), least, most, std::string(py::str(whole))));
  return number;
}

std::uint64_t unsigned_of(py::handle value, const Place& place) {
  const py::object whole = index_of(value);
  if (!whole) wrong_value(place, "a whole number", value);
  const unsigned long long number = PyLong_AsUnsignedLongLong(whole.ptr());
  if (number == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw usage_error(fmt::format("{}: expected a whole number from 0 to 2^64 - 1, found {}",
                                  place.text(), std::string(py::str(whole))));
  }
  return number;
}

double number_of(py::handle value, const Place& place) {
  if (PyFloat_CheckExact(value.ptr())) return PyFloat_AS_DOUBLE(value.ptr());
  const bool text = PyUnicode_Check(value.ptr()) != 0 || PyBool_Check(value.ptr()) != 0;
  const double number = text ? -1 : PyFloat_AsDouble(value.ptr());
  if (text || (number == -1 && PyErr_Occurred() != nullptr)) {
    PyErr_Clear();
    wrong_value(place, "a number", value);
  }
  return number;
}

bool truth_of(py::handle value, const Place& place) {
  if (value.ptr() == Py_True) return true;
  if (value.ptr() == Py_False) return false;
  if (type_of(value) == "bool_" || type_of(value) == "bool")
    return PyObject_IsTrue(value.ptr()) == 1;
  const py::object whole = index_of(value);
  const long number = whole ? PyLong_AsLong(whole.ptr()) : -1;
  if (number != 0 && number != 1) {
    PyErr_Clear();
    wrong_value(place, "True or False", value);
  }
  return number == 1;
}

}  // namespace numemu::python
