// A fast path as the list of fast paths calls it.
#pragma once
#include <algorithm>

#include "emu/unit/fast_paths.hpp"

namespace numemu::unit::test {

using Multiply = bool (*)(const UnitDescription&, const Gemm&);

/// multiply() of one path; false where the path does not understand the description.
inline bool by_path(Multiply multiply, const UnitDescription& unit, const Gemm& gemm) {
  const FastPath& path = *std::ranges::find(fast_paths(), multiply, &FastPath::multiply);
  return understands(path, unit) && multiply(unit, gemm);
}

}  // namespace numemu::unit::test
