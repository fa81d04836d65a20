#include "bindings/python/call.hpp"
#include "bindings/python/python.hpp"

PYBIND11_MODULE(_core, m) {
  using namespace numemu::python;
  m.doc() = "What the package numemu is made of: api/ for Python.";
  m.attr("__version__") = NUMEMU_VERSION;
  add_errors(m);
  add_formats(m);
  add_blocks(m);
  add_analysis(m);
  add_units(m);
  add_vectors(m);
  add_masks(m);
  add_products(m);
  add_networks(m);
  add_studies(m);
}
