// What a verification found, for Python.
#pragma once
#include <string>

#include "api/oracle.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {

/// A numemu.Verified.
py::object python_of(const api::Verified&);
/// In the words of `numemu verify`. Throws Error naming what is none of them.
api::Equality equality_of(const std::string& nan, std::uint64_t ulp, const std::string& zero_sign);

}  // namespace numemu::python
