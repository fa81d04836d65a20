// Integer products one by one in 64-bit sums, with every kind of saturation.
#pragma once
#include <cstdint>

#include "emu/unit/integer/block.hpp"

namespace numemu::unit {

/// The registers of a block and the sums of the step they are in.
struct WideState {
  std::int64_t registers[kBlock * kBlock], step[kBlock * kBlock];
};

/// Words of one element; `block.sums` is C before the first slice and the registers after the last.
/// The sum of up to `step_size` products and the register is clamped to [low, high]. Exact while
/// step_size * 2^32 + 2^31 < 2^63.
struct WideBlock {
  Block block;
  WideState* state = nullptr;
  bool first = true, last = true;
  std::int64_t step_size = 1;
  std::int64_t done = 0;  ///< products of the step in which the slice begins
  std::int64_t low = 0, high = 0;
};

/// Products of the words, or with `block.table` its entries.
void run_wide(const WideBlock&);

}  // namespace numemu::unit
