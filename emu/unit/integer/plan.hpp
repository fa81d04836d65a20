// The integer arithmetic that a description requires, and the kernels that support it.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>

#include "emu/unit/integer/path.hpp"

namespace numemu::unit {

/// Steps without end: the register is clamped once, or not at all.
constexpr std::int64_t kWholeDepth = std::numeric_limits<std::int64_t>::max();

/// The largest magnitude of one product.
struct IntegerPlan {
  std::int64_t largest_product = 0;
  bool saturates = false;
  std::int64_t step = kWholeDepth;  ///< products after which a saturating register is clamped
};

/// Nothing where the description or the operands are beyond the integer kernels.
std::optional<IntegerPlan> plan_integer(const UnitDescription&, const Gemm&);

/// Whether clamping the exact sum of all products and C once gives what clamping step by step does:
/// there is but one step, or no partial sum can leave the register.
bool clamps_once(const IntegerPlan&, int bits, std::int64_t k, std::int64_t largest_c);

/// Whether every sum of k products fits 32 bits.
bool sums_fit(const IntegerPlan&, std::int64_t k);

}  // namespace numemu::unit
