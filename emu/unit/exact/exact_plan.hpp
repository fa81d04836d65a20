// The proof that host arithmetic is exact for a product, and how to cut operands until it is.
#pragma once
#include <vector>

#include "emu/unit/operand.hpp"

namespace numemu::unit {

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
