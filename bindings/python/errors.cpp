#include "bindings/python/errors.hpp"

#include <exception>
#include <new>
#include <system_error>

#include "formats/error.hpp"

namespace numemu::python {
namespace {

constexpr const char* kErrorDoc =
    "What is wrong, in one line with the file, the argument or the position, and what was "
    "expected: "
    "the line that the program prints.\n\n"
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
  const py::object instance = py::reinterpret_borrow<py::object>(error_type)(error.what());
  instance.attr("kind") = word_of(error.kind());
  PyErr_SetObject(error_type, instance.ptr());
}

/// Of what a library below throws; pybind11 itself translates what is Python's.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    set_error(error_of(thrown));
  } catch (const std::system_error&) {
    set_error(error_of(thrown));
  }
}

}  // namespace

void add_errors(py::module_& m) {
  error_type = PyErr_NewExceptionWithDoc("numemu.Error", kErrorDoc, PyExc_Exception, nullptr);
  m.attr("Error") = py::reinterpret_borrow<py::object>(error_type);
  py::register_exception_translator(translate);
}

}  // namespace numemu::python
