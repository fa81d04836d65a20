// Asking check_description() about a changed unit: for the tests of its refusals.
#pragma once
#include <functional>
#include <string>

#include "tests/catch.hpp"
#include "tests/emu/unit/description/samples.hpp"

namespace numemu::unit::test {

using Change = std::function<void(UnitDescription&)>;

/// Refuses the changed unit with "my.unit: " and exactly this text.
inline void refuses(CoreKind core, const std::string& text, const Change& change) {
  UnitDescription u = sample(core);
  change(u);
  INFO(text);
  CHECK_THROWS_WITH(check_description(u), "my.unit: " + text);
}

inline void accepts(CoreKind core, const Change& change) {
  UnitDescription u = sample(core);
  change(u);
  CHECK_NOTHROW(check_description(u));
}

inline Rounding mode(RoundingMode m) { return {.mode = m}; }
inline Rounding random_bits(int n) { return {RoundingMode::sr, StochasticVariant::c, n}; }

}  // namespace numemu::unit::test
