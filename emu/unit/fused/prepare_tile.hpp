// A rectangle of outputs of a fused unit, and the numbers that its steps need.
#pragma once
#include <cstdint>
#include <functional>

#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/tiles.hpp"

namespace numemu::unit {

/// What the steps of a product have in common.
///
/// Stored exponents: of an element of the lanes e + `base`, of the rows e + 127 - base, of a zero
/// element as if e were -base; so their sums are biased as float32 exponents are. Where zero
/// elements have an exponent, that is -base. Where they drop out, base is so large that a product
/// with one stays below all others: -base + 127 < -149 - 149.
struct FusedSteps {
  FusedRule rule;
  int base = 0;
  /// The largest exponent may be raised to this without changing a bit: it is the unit's floor, or
  /// every addend is a multiple of 2^(least - F), so that nothing is cut there or below.
  int least = 0;
  /// Every addend is a multiple of 2^lowest.
  int lowest = 0;
  int exponent_of_zero_c = 0;
  bool bounded = false;           ///< no sum reaches the register's end
  bool plain_worthwhile = false;  ///< many steps have no larger exponent than lowest + F
  std::uint64_t nan_code = 0;
};

/// Outputs (i, j), i in [row_begin, row_end), j in [lane_begin, lane_end): the lanes fill vectors,
/// the rows are broadcast. Output (i, j) is d[i * row_stride + j * lane_stride]; one of the strides
/// is 1.
struct FusedTile {
  const FusedSteps* steps = nullptr;
  const FusedSide *rows = nullptr, *lanes = nullptr;
  std::int64_t row_begin = 0, row_end = 0, lane_begin = 0, lane_end = 0, k = 0;
  std::int64_t row_stride = 0, lane_stride = 1;
  const void* c = nullptr;
  void* d = nullptr;
};

FusedSteps fused_steps(const UnitDescription&, const FusedOperands&);

/// Cuts the product into tiles, the side that fills vectors better as lanes. Rounding is toward
/// zero inside `run`.
void run_fused_tiles(const Gemm&, const FusedOperands&, const FusedSteps&,
                     const std::function<void(const FusedTile&)>& run);

}  // namespace numemu::unit
