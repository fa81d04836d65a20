// Unknown names are errors that offer the nearest known one, or all where they are few.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.hpp"

namespace numemu {

/// The same letters, without regard to case (ASCII).
bool same_name(std::string_view a, std::string_view b);

/// The entry of `known` with the smallest edit distance to `name`, case left aside (earliest wins
/// ties); "" if `known` is empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// nearest_name() where the distance is at most max(2, a third of NAME): a name that may be meant.
std::optional<std::string> suggested_name(std::string_view name,
                                          const std::vector<std::string>& known);

/// The message of every command for an unknown name: "unknown KIND 'NAME'; did you mean
/// 'NEAREST'?" with the suggested name, else "...; known: A, B" where all fit on the line, else
/// "...; near: A, B" with those that NAME is a part of, or the nearest, and what lists all.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known);

/// The place among `rows` of the first whose name is `name`; throws Error with unknown_name() of
/// all their names. `name_of` gives a row's name, or is the member that has it; without it the rows
/// are the names.
template <class Rows, class NameOf = std::identity>
std::size_t index_named(std::string_view kind, std::string_view name, const Rows& rows,
                        NameOf name_of = {}) {
  std::vector<std::string> known;
  for (const auto& row : rows) {
    if (std::invoke(name_of, row) == name) return known.size();
    known.emplace_back(std::invoke(name_of, row));
  }
  throw Error(unknown_name(kind, name, known));
}
/// The row itself; `rows` lives on.
template <class Rows, class NameOf = std::identity>
const auto& find_named(std::string_view kind, std::string_view name, const Rows& rows,
                       NameOf name_of = {}) {
  return *(std::begin(rows) + static_cast<std::ptrdiff_t>(index_named(kind, name, rows, name_of)));
}

}  // namespace numemu
