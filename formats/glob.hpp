// Patterns of names, as shells have them.
#pragma once
#include <string_view>

namespace numemu {

/// Whether a glob (* any run, ? one character) matches a whole name.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace numemu
