#include "bindings/python/python.hpp"

namespace numemu::python {

void add_analysis(py::module_&) {}

}  // namespace numemu::python
