// The integer arithmetic that a description requires, and the kernels that support it.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

enum class IntegerPath : std::uint8_t {
  best,      ///< the fastest of the others that takes the product
  amx,       ///< bytes in tiles: TDPBSSD, TDPBSUD, TDPBUSD, TDPBUUD
  vnni,      ///< AVX-512: VPDPBUSD for bytes, VPDPWSSD for 16-bit words
  portable,  ///< any instruction set: pairs of 16-bit products, counted bits, gathered table
             ///< entries
  wide,      ///< any instruction set: single products in 64-bit sums, saturating step by step
};

/// Whether this CPU, and the system, let the path run.
bool has_path(IntegerPath);

/// multiply_integer() by one path only; false also where the path does not take the product.
bool multiply_integer(const UnitDescription&, const Gemm&, IntegerPath);

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
