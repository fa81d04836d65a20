// A fast path as the list of fast paths calls it.
#pragma once
#include <algorithm>
#include <string_view>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/fast_paths.hpp"

namespace numemu::unit::test {

using Multiply = bool (*)(const UnitDescription&, const Gemm&);

/// Whether the path understands every field that the description changes from its default.
inline bool understands(const FastPath& path, const UnitDescription& unit) {
  static constexpr std::string_view kAlways[] = {"name", "a", "b"};
  return (changed_field_set(unit) & ~(field_set(path.fields) | field_set(kAlways))).none();
}

/// multiply() of one path; false where the path does not understand the description.
inline bool by_path(Multiply multiply, const UnitDescription& unit, const Gemm& gemm) {
  const FastPath& path = *std::ranges::find(fast_paths(), multiply, &FastPath::multiply);
  return understands(path, unit) && multiply(unit, gemm);
}

}  // namespace numemu::unit::test
