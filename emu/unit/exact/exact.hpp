// Exact sums rounded once, fast wherever a proof covers host arithmetic.
#pragma once
#include <cstdint>
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kExactFields[] = {"core", "accumulator.format", "c", "d"};

/// Covers the exact core over the whole depth with a float32 register, without scales. False where
/// it does not apply.
bool multiply_exact(const UnitDescription&, const Gemm&);

/// What is added for outputs 0, 1...: finite numbers sums[0][i] + sums[1][i] + ... + c[i]. Arrays
/// of doubles can be read kCombineSlack elements beyond the last output.
struct CombinedSums {
  const double* const* sums = nullptr;
  int count = 0;
  const double* specials = nullptr;  ///< NaN and infinity where the result is; may be null
  Exponents range;                   ///< of every term and of the total, but infinite C
};
constexpr std::int64_t kCombineSlack = 8;

/// Whether two doubles hold every total.
bool can_combine(int count, Exponents range);

/// d[i] for i in [0, outputs); c may be null. A total that is zero is -0 where every term is;
/// without C it is +0. NaN is 0x7fc00000. Only where can_combine(), and under a FloatGuard.
void combine_sums(const CombinedSums&, std::int64_t outputs, const float* c, float* d);

}  // namespace numemu::unit
