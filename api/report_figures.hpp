// What callers are told of figures that were written.
#pragma once
#include <string>

#include "api/context.hpp"
#include "experiments/paper/figures.hpp"

namespace numemu::api {

void tell_figures(const experiments::WrittenFigures&, const std::string& folder, const Context&);

}  // namespace numemu::api
