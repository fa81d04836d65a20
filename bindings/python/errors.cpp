#include "bindings/python/errors.hpp"

#include <exception>
#include <string>

#include "bindings/python/options.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

constexpr const char* kErrorDoc =
    "What is wrong, in one line with the file, the argument or the position, and what was "
    "expected: "
    "the line that the program prints, with the names that options have in Python.\n\n"
    "kind: 'usage' (arguments that are missing, wrong or contradict each other), 'file' (what "
    "cannot "
    "be opened, read, made or written), 'value' (what a file, a name or a text says is wrong or "
    "does "
    "not fit), 'memory', or 'internal' (a fault of numemu or of a library).";

const char* word_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::file:
      return "file";
    case ErrorKind::value:
      return "value";
    case ErrorKind::memory:
      return "memory";
    case ErrorKind::internal:
      break;
  }
  return "internal";
}

PyObject* error_type = nullptr;  // lives as long as the interpreter

void set_error(const Error& error) {
  // Names of files may be any bytes.
  const std::string text = with_names_of_python(error.what());
  const auto words = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (!words) return;
  const py::object instance = py::reinterpret_borrow<py::object>(error_type)(words);
  instance.attr("kind") = word_of(error.kind());
  PyErr_SetObject(error_type, instance.ptr());
}

void set_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_MemoryError))
      set_error(memory_error(py::str(error.value())));
    else
      error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (...) {
    set_error(error_of(thrown));
  }
}

/// Of properties and classes, which pybind11 calls.
void translate(std::exception_ptr thrown) {
  if (thrown) set_error(thrown);
}

}  // namespace

void set_current_error() { set_error(std::current_exception()); }

void add_errors(py::module_& m) {
  error_type = PyErr_NewExceptionWithDoc("numemu.Error", kErrorDoc, PyExc_Exception, nullptr);
  // Of an Error that a caller makes.
  if (PyObject_SetAttrString(error_type, "kind", py::str("value").ptr()) != 0)
    throw py::error_already_set();
  m.attr("Error") = py::reinterpret_borrow<py::object>(error_type);
  py::register_local_exception_translator(translate);
}

}  // namespace numemu::python
