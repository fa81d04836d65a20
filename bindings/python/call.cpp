#include "bindings/python/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>

#include "bindings/python/options.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

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

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first);
}

}  // namespace

void Signature::define(const char* self, _PyCFunctionFastWithKeywords function) {
  bool by_name = false;
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view one = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (one == "*") {
      by_name = true;
      continue;
    }
    const std::size_t equals = one.find('=');
    Parameter parameter{.name = std::string(one.substr(0, equals))};
    parameter.word = PyUnicode_InternFromString(parameter.name.c_str());
    if (equals != std::string_view::npos)
      parameter.standard = py::eval(py::str(std::string(one.substr(equals + 1)))).release().ptr();
    parameters_.push_back(std::move(parameter));
    if (!by_name) positional_ = parameters_.size();
  }
  // The first lines are __text_signature__, which CPython cuts off.
  doc_ = fmt::format("{}({}{}{})\n--\n\n{}", name_, self, text_.empty() ? "" : ", ", text_, doc_);
  method_ = {name_, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
             METH_FASTCALL | METH_KEYWORDS, doc_.c_str()};
}

void Signature::add(py::module_& m, _PyCFunctionFastWithKeywords function) {
  define("$module", function);
  const auto module_name = py::reinterpret_steal<py::object>(PyModule_GetNameObject(m.ptr()));
  m.attr(name_) =
      py::reinterpret_steal<py::object>(PyCFunction_NewEx(&method_, m.ptr(), module_name.ptr()));
}

void Signature::add(const py::object& cls, _PyCFunctionFastWithKeywords function) {
  define("$self", function);
  cls.attr(name_) = py::reinterpret_steal<py::object>(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(cls.ptr()), &method_));
}

void Signature::bind(PyObject* const* args, Py_ssize_t count, PyObject* names,
                     std::array<PyObject*, kMost>& values) const {
  const auto given = static_cast<std::size_t>(count);
  if (given > positional_)
    throw usage_error(fmt::format("{}: expected at most {} argument{} without a name, found {}",
                                  name(), positional_, positional_ == 1 ? "" : "s", given));
  std::copy_n(args, given, values.begin());
  std::fill(values.begin() + static_cast<std::ptrdiff_t>(given),
            values.begin() + static_cast<std::ptrdiff_t>(parameters_.size()), nullptr);
  const std::size_t named =
      names == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(names));
  for (std::size_t k = 0; k < named; ++k) {
    PyObject* const word = PyTuple_GET_ITEM(names, k);
    auto at = std::ranges::find(parameters_, word, &Parameter::word);
    // Names of calls with ** need not be interned.
    if (at == parameters_.end())
      at = std::ranges::find_if(parameters_, [&](const Parameter& parameter) {
        return PyUnicode_Compare(parameter.word, word) == 0;
      });
    if (at == parameters_.end()) {
      std::vector<std::string> known;
      for (const Parameter& parameter : parameters_) known.push_back(parameter.name);
      throw usage_error(fmt::format(
          "{}: {}", name(), unknown_name("argument", text_of(word, {name(), "name"}), known)));
    }
    PyObject*& value = values[static_cast<std::size_t>(at - parameters_.begin())];
    if (value != nullptr) throw usage_error(fmt::format("{}: {} is given twice", name(), at->name));
    value = args[given + k];
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (values[i] != nullptr) continue;
    values[i] = parameters_[i].standard;
    if (values[i] == nullptr)
      throw usage_error(fmt::format("{}: expected an argument {}", name(), parameters_[i].name));
  }
}

}  // namespace numemu::python
