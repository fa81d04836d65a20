// Units as arguments: objects, names, files or descriptions.
#pragma once
#include "api/units.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {

/// numemu.Unit.
struct OpenedUnit {
  api::UnitPtr unit;
};
/// Of numemu.Unit, a name, a file NAME.json or a dict. Throws Error as api::open_unit() does.
OpenedUnit open_unit(py::handle unit);

}  // namespace numemu::python
