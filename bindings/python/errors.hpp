// numemu.Error: what is wrong, in the line that the program prints, and its kind.
#pragma once
#include "bindings/python/python.hpp"

namespace numemu::python {

/// Defines Error in the module and translates to it what api/ throws. Exceptions of Python pass.
void add_errors(py::module_&);

}  // namespace numemu::python
