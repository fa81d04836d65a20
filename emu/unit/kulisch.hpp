// An exact accumulator: fixed point, wide enough that no sum of products of two formats is rounded.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/operand.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

/// Sums values and products exactly (Kulisch's long accumulator, in 64-bit limbs, two's
/// complement). NaN, 0 * infinity and infinity - infinity make the sum NaN. A sum that is exactly
/// zero is -0 when every term was a zero of negative sign (a product's sign is the exclusive or of
/// its factors'), +0 when every term was one of positive sign or there was none, else as sum()
/// says: what a chain of IEEE 754 additions gives (6.3), extended to any order.
class Kulisch {
 public:
  /// Room for `terms` terms that are multiples of 2^low and below 2^top in magnitude.
  Kulisch(Exponents range, std::int64_t terms);

  void clear();
  void add(const Value&);
  void add_product(const Value&, const Value&);
  /// The sum; its significand holds the leading 64 bits, `sticky`: nonzero bits lie below. `down`:
  /// terms that are not zeros of one sign cancel to -0, as where the sum is rounded down.
  Value sum(bool down = false) const;

 private:
  __extension__ typedef unsigned __int128 Wide;
  void add_term(Class, bool negative, Wide significand, int exponent);

  int low_;
  std::vector<std::uint64_t> limbs_;
  bool nan_ = false, positive_infinity_ = false, negative_infinity_ = false;
  bool all_negative_zero_ = true, all_positive_zero_ = true;
};

/// The range of products of two ranges, and the smallest range that holds two.
Exponents product_range(Exponents, Exponents);
Exponents join(Exponents, Exponents);

}  // namespace numemu::unit
