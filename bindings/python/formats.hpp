// Formats as arguments: objects or names.
#pragma once
#include "bindings/python/python.hpp"
#include "formats/conversion.hpp"
#include "formats/format.hpp"

namespace numemu::python {

/// Of numemu.Format, or of its name. Throws Error with the nearest known name; `name` is the
/// argument's.
const Format& format_of(const py::handle& format, const char* name = "format");
py::dict counts_dict(const FlagCounts&);

}  // namespace numemu::python
