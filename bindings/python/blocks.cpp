#include "bindings/python/python.hpp"

namespace numemu::python {

void add_blocks(py::module_&) {}

}  // namespace numemu::python
