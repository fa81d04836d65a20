// numemu.Error: what is wrong, in the line that the program prints, and its kind.
#pragma once
#include "bindings/python/python.hpp"

namespace numemu::python {

/// Defines Error in the module and translates to it what api/ throws. Exceptions of Python pass.
void add_errors(py::module_&);

/// Within a catch: the error of Python for what was thrown. Exceptions of Python stay what they
/// are, but for MemoryError, which is an Error of kind memory.
void set_current_error();

}  // namespace numemu::python
