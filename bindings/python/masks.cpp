#include "bindings/python/python.hpp"

namespace numemu::python {

void add_masks(py::module_&) {}

}  // namespace numemu::python
