// Where two units that compute one output part: the first sum of the same products that differs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "emu/unit/reference/running_sums.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// One unit's way to an output. Its steps [begin, end) lead from the last sum in which both agree
/// to the first in which they differ, `held`. Of chains, whose terms have sums of their own, terms
/// from begin_term of the first step to end_term of the last one.
struct DivergentSide {
  Trace trace;
  RunningSums sums;
  std::size_t begin = 0, end = 0;
  std::size_t begin_term = 0;
  std::optional<std::size_t> end_term = {};
  Value held;    ///< in the register after step end - 1, or after its term end_term - 1
  Value result;  ///< D
};

struct Divergence {
  DivergentSide first, second;
  bool differs = false;  ///< in a sum, or in D
  bool in_sum = false;   ///< false where only D differs, as a sum that both round to D differently
  bool with_c = false;   ///< the sum that differs has C
  std::int64_t agreed = 0,
               products = 0;  ///< in the last sum that agrees, and in that which differs
};

/// Computes output (i, j) of the product by both descriptions, which take its operands. Sums are
/// compared as numbers, zeros of either sign as equal; a sum that only one unit forms is passed
/// over. Stochastic registers draw for output `number`, by default i N + j. Throws Error as
/// Unit::multiply() does.
Divergence find_divergence(const UnitDescription& first, const UnitDescription& second, const Gemm&,
                           std::int64_t i, std::int64_t j, std::optional<std::int64_t> number = {});

/// "step 1, k 16..31: 0x1.8p+3 (12) against 0x1.9p+3 (12.5) in step 3, k 24..31", or "no
/// difference".
std::string divergence_line(const Divergence&);

/// Whether two values are the same number; NaN is one, zeros are.
bool same_number(const Value&, const Value&);

}  // namespace numemu::unit
