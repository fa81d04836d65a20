// Exact sums of a few doubles and C, rounded once to float32.
#pragma once
#include <cstdint>

#include "emu/unit/operand.hpp"

namespace numemu::unit {

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
