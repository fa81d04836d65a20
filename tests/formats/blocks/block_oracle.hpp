// Block formats by exact fractions: the neighbours in the list of element values decide; shares no
// code with the conversion under test.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/blocks/block_format.hpp"
#include "formats/rounding.hpp"
#include "tests/oracle/rational.hpp"

namespace numemu::oracle {

using Fraction = Rational;

inline Fraction power_of_two(int e) { return Fraction::power_of_two(e); }
inline Fraction fraction(double x) { return Fraction::of(x); }

/// The finite values of a format in ascending order with their codes; one code for zero.
struct Element {
  Fraction value;
  std::uint64_t code;
};
std::vector<Element> elements_of(const Format& f, int exponent, bool symmetric);

/// The element that q rounds to, saturating; zero has the positive code. Evenness is that of the
/// magnitude's code (two's complement: of the number), as in the specification.
Element rounded(const std::vector<Element>& list, const Fraction& q, RoundingMode mode);

/// The float32 nearest to x, ties to even; infinite from the midpoint beyond the largest on.
float nearest_float(const Fraction& x);

}  // namespace numemu::oracle
