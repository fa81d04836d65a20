#include "bindings/python/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::python {
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
