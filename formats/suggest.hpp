// Unknown names are errors that offer the nearest known one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace numemu {

/// The entry of `known` with the smallest edit distance to `name` (earliest wins ties); "" if
/// `known` is empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "unknown KIND 'NAME'; did you mean 'NEAREST'?" - the text every command prints for a name it
/// does not know.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known);

}  // namespace numemu
