// JSON and the dicts, lists, numbers and texts of Python.
#pragma once
#include "bindings/python/python.hpp"
#include "formats/storage/json.hpp"

namespace numemu::python {

/// Dicts keep the order of their keys.
py::object python_of(const Json&);
/// Of dicts with texts as keys, lists, tuples, texts, numbers (NumPy's, too), bool and None. Throws
/// Error naming `name` and the path of anything else: "recipe: roles.weight: expected ...".
Json json_of(py::handle, const std::string& name);

}  // namespace numemu::python
