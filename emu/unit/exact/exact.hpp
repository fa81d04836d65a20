// Exact sums rounded once, fast wherever a proof covers host arithmetic.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

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

/// How to compute sums of products without rounding any.
struct ExactPlan {
  enum class Way : std::uint8_t {
    float32,  ///< float32 multiply-adds, C included: every partial sum has at most 24 bits
    float64,  ///< the same in float64: at most 53
    split,    ///< operands cut into pieces, float64 chains of every pair of pieces, their sum and C
              ///< in two doubles or in 128 bits
    kulisch,  ///< none of these
  };
  Way way = Way::kulisch;
  std::vector<Exponents> a, b;  ///< split: the bits of each piece, lowest first
  Exponents total;              ///< split: of the sum with C, and of each of its terms
};

/// `a`, `b`, `c`: the finite values present in the operands and in C. Every sum of k products is a
/// multiple of 2^(a.low + b.low) and below 2^(a.top + b.top + ceil(log2 k)); a sum of that many
/// bits or fewer is never rounded.
ExactPlan plan_exact(Exponents a, Exponents b, Exponents c, std::int64_t k);

/// The bits of a finite value inside the piece, with the value's sign (a zero keeps it); 0 for NaN
/// and infinity.
double piece_of(const Value&, Exponents piece);

}  // namespace numemu::unit
