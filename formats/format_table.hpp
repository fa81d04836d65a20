// The rows of formats.def by name. Standard library alone, so that programs without the others can
// use them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace numemu {

/// The row with this name or alias; null where there is none.
const Format* named_format(std::string_view name);

/// Names and aliases of all rows, in alphabetical order.
std::vector<std::string> names_of_formats();

}  // namespace numemu
