// What the register of a traced output held on the way, and which products each such sum has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/reference/trace.hpp"

namespace numemu::unit {

/// A sum that the register held.
struct RunningSum {
  std::int64_t products = 0;             ///< it has the first so many of RunningSums::order
  bool with_c = false;                   ///< and C
  std::size_t step = 0;                  ///< of the trace
  std::optional<std::size_t> term = {};  ///< of that step, after which; none: at its end
  Value held;
};

/// The sums of one trace, each with more products than the one before, or with C. Sums that begin
/// at +0 and are joined later (a chunk, one of several chains) count from where they join.
struct RunningSums {
  std::vector<std::int64_t> order;  ///< k of the products as they join
  std::vector<RunningSum> sums;
};

RunningSums running_sums(const UnitDescription&, const Trace&);
/// What the register, or the outer one, holds after a step; NaN where its format has none.
Value held_after(const UnitDescription&, const TraceStep&);

}  // namespace numemu::unit
