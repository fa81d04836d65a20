// Unknown names are errors that offer the nearest known one, or all where they are few.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numemu {

/// The same letters, without regard to case (ASCII).
bool same_name(std::string_view a, std::string_view b);

/// The entry of `known` with the smallest edit distance to `name`, case left aside (earliest wins
/// ties); "" if `known` is empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// The same where the distance is at most max(2, a third of NAME): a name that may be meant.
std::optional<std::string> suggested_name(std::string_view name,
                                          const std::vector<std::string>& known);

/// The message of every command for an unknown name: "unknown KIND 'NAME'; did you mean
/// 'NEAREST'?" with the suggested name, else "unknown KIND 'NAME'; known: A, B" for at most 12
/// names, else the first part alone.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known);

}  // namespace numemu
