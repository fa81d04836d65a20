// A number significand * 2^exponent as a key that orders like the number: exact, quick to compare.
#pragma once
#include <boost/multiprecision/cpp_int.hpp>
#include <compare>
#include <cstdint>
#include <limits>

#include "formats/value.hpp"

namespace numemu::oracle {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;
__extension__ typedef unsigned __int128 Wide;

/// bits * 2^(lead - 127), the leading bit of `bits` set; zero has bits = 0. With `sticky` the
/// number lies strictly between this and the next 128-bit significand. The order of the members is
/// the order of the numbers.
struct Dyadic {
  std::int64_t lead = std::numeric_limits<std::int64_t>::min();
  Wide bits = 0;
  bool sticky = false;

  bool zero() const { return bits == 0; }
  bool power_of_two() const { return bits == Wide{1} << 127; }
  friend std::strong_ordering operator<=>(const Dyadic& a, const Dyadic& b) {
    if (const auto order = a.lead <=> b.lead; order != 0) return order;
    if (a.bits != b.bits) return a.bits <=> b.bits;
    return a.sticky <=> b.sticky;
  }
  friend bool operator==(const Dyadic&, const Dyadic&) = default;
};

/// significand * 2^exponent.
Dyadic dyadic(Wide significand, std::int64_t exponent);
/// A number that is not negative; sticky where 128 bits do not hold it.
Dyadic dyadic(const Rational&);
/// |x| of a finite float64.
Dyadic dyadic(double x);
Rational rational(const Dyadic&);

/// A fraction part / whole that need not be reduced: to reduce one takes longer than all else that
/// is done with it.
struct Share {
  Integer part, whole;
};

/// Where x lies in the gap from low to high: (x - low) / (high - low).
Share share(const Dyadic& x, const Dyadic& low, const Dyadic& high);
/// low + (high - low) part / 2^bits; throws where 128 bits do not hold it.
Dyadic part_way(const Dyadic& low, const Dyadic& high, int part, int bits);
/// (a + b) / 2, exact for neighbours in a format.
Dyadic middle(const Dyadic& a, const Dyadic& b);
/// The next number above or below with `precision` significant bits and no finer unit than
/// 2^lowest: the neighbours of x in float32 are those of (24, -149). x must be such a number and
/// not zero.
Dyadic next_above(const Dyadic& x, int precision, std::int64_t lowest);
Dyadic next_below(const Dyadic& x, int precision, std::int64_t lowest);

/// The same number for encode(); at most 64 significant bits.
Value value(const Dyadic&, bool negative);

}  // namespace numemu::oracle
