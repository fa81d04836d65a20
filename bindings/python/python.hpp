// What every source of the extension module includes (precompiled), and the parts that module.cpp
// puts together.
#pragma once
#include <pybind11/eval.h>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace numemu::python {

namespace py = pybind11;
using namespace pybind11::literals;

/// Each adds classes and functions to numemu._core.
void add_formats(py::module_&);
void add_blocks(py::module_&);
void add_analysis(py::module_&);
void add_units(py::module_&);
void add_vectors(py::module_&);
void add_masks(py::module_&);
void add_products(py::module_&);
void add_networks(py::module_&);
void add_studies(py::module_&);

}  // namespace numemu::python
