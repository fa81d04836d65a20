#include "bindings/python/python.hpp"

namespace numemu::python {

void add_units(py::module_&) {}

}  // namespace numemu::python
