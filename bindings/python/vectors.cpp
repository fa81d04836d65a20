#include "bindings/python/python.hpp"

namespace numemu::python {

void add_vectors(py::module_&) {}

}  // namespace numemu::python
