// Functions of the module: arguments by position and by name at little cost, signatures that help()
// and inspect show, and numemu.Error for what does not fit.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/python.hpp"
#include "bindings/python/values.hpp"

namespace numemu::python {

/// Defines Error in the module and translates to it what api/ throws. Exceptions of Python pass.
void add_errors(py::module_&);

/// Within a catch: the error of Python for what was thrown. Exceptions of Python stay what they
/// are, but for MemoryError, which is an Error of kind memory.
void set_current_error();

/// What is declared of a function, once: its name, its parameters as Python writes them
/// ("x, *, rounding='rne', out=None") and its docstring.
class Signature {
 public:
  static constexpr std::size_t kMost = 20;  ///< parameters

  Signature(const char* name, std::string parameters, std::string doc)
      : name_(name), text_(std::move(parameters)), doc_(std::move(doc)) {}
  Signature(const Signature&) = delete;

  /// As in errors: what networks.py calls has an underscore.
  const char* name() const { return name_ + (*name_ == '_' ? 1 : 0); }
  const char* parameter(std::size_t i) const { return parameters_[i].name.c_str(); }
  /// One value for each parameter, borrowed. Throws Error for arguments that it does not have, has
  /// twice or misses.
  void bind(PyObject* const* args, Py_ssize_t count, PyObject* names,
            std::array<PyObject*, kMost>& values) const;

  /// Puts the function into the module, or the method into the class.
  void add(py::module_&, _PyCFunctionFastWithKeywords);
  void add(const py::object& cls, _PyCFunctionFastWithKeywords);

 private:
  struct Parameter {
    std::string name;
    PyObject* word = nullptr;      ///< the name, interned
    PyObject* standard = nullptr;  ///< its value where it is not given; null: it must be
  };
  void define(const char* self, _PyCFunctionFastWithKeywords);

  const char* name_;
  std::string text_, doc_;
  std::vector<Parameter> parameters_;
  std::size_t positional_ = 0;  ///< the first of them, which need no name
  PyMethodDef method_ = {};
};

/// The values of a call.
class Arguments {
 public:
  Arguments(const Signature& signature, PyObject* const* args, Py_ssize_t count, PyObject* names)
      : signature_(signature) {
    signature.bind(args, count, names, values_);
  }
  py::handle operator[](std::size_t i) const { return values_[i]; }
  /// Throws Error naming the parameter where it is of another type.
  template <class T>
  T get(std::size_t i) const {
    return value_of<T>(values_[i], {signature_.name(), signature_.parameter(i)});
  }

 private:
  const Signature& signature_;
  std::array<PyObject*, Signature::kMost> values_;
};

/// Runs f, and sets the error of Python for what it throws.
template <class F>
PyObject* guarded(const F& f) {
  try {
    return f().release().ptr();
  } catch (...) {
    set_current_error();
    return nullptr;
  }
}

namespace call_detail {

template <auto& kSignature, auto kBody>
PyObject* function(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> py::object { return kBody(Arguments(kSignature, args, count, names)); });
}

template <auto& kSignature, class T, py::object (*kBody)(const T&, const Arguments&)>
PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> py::object {
    return kBody(py::handle(self).cast<const T&>(), Arguments(kSignature, args, count, names));
  });
}

}  // namespace call_detail

/// Defines the function of that signature: body(const Arguments&) -> py::object.
template <auto& kSignature, auto kBody>
void add_function(py::module_& m) {
  kSignature.add(m, &call_detail::function<kSignature, kBody>);
}
/// A method of a class of T: body(const T&, const Arguments&) -> py::object.
template <auto& kSignature, class T, py::object (*kBody)(const T&, const Arguments&)>
void add_method(const py::object& cls) {
  kSignature.add(cls, &call_detail::method<kSignature, T, kBody>);
}

}  // namespace numemu::python
