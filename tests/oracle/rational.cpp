// Fractions and the leading bits of one, by GMP through Boost.Multiprecision: a fifth of the time
// of Boost's own integers.
#include "tests/oracle/rational.hpp"

#include <algorithm>
#include <boost/multiprecision/gmp.hpp>
#include <cmath>
#include <new>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "tests/oracle/dyadic.hpp"

namespace numemu::oracle {
namespace {

using Integer = boost::multiprecision::mpz_int;
using Number = boost::multiprecision::mpq_rational;

const Number& get(const Rational& x) {
  return *std::launder(static_cast<const Number*>(x.number()));
}
Number& get(Rational& x) { return const_cast<Number&>(get(std::as_const(x))); }

Rational made(const Number& number) {
  Rational x;
  get(x) = number;
  return x;
}

// GMP has no conversion to or from numbers of 128 bits.
Integer integer(Wide x) {
  return Integer(static_cast<std::uint64_t>(x >> 64)) << 64 | static_cast<std::uint64_t>(x);
}
Wide wide(const Integer& x) {
  return Wide{static_cast<std::uint64_t>(Integer(x >> 64))} << 64 |
         static_cast<std::uint64_t>(Integer(x & ~std::uint64_t{0}));
}

Integer power(std::int64_t exponent) { return Integer(1) << static_cast<unsigned>(exponent); }

}  // namespace

Rational::Rational(Whole x) {
  static_assert(sizeof(Number) <= sizeof(number_) && alignof(Number) <= 8);
  const Integer magnitude = integer(x.magnitude);
  ::new (number_) Number(x.negative ? Integer(-magnitude) : magnitude, 1);
}
Rational::Rational(const Rational& numerator, const Rational& denominator) {
  ::new (number_) Number(get(numerator) / get(denominator));
}
Rational::Rational(const Rational& x) { ::new (number_) Number(get(x)); }
Rational::Rational(Rational&& x) noexcept { ::new (number_) Number(std::move(get(x))); }
Rational& Rational::operator=(const Rational& x) {
  get(*this) = get(x);
  return *this;
}
Rational& Rational::operator=(Rational&& x) noexcept {
  get(*this) = std::move(get(x));
  return *this;
}
Rational::~Rational() { get(*this).~Number(); }

Rational Rational::of(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // exact: only takes the bits apart
  const Integer significand = static_cast<std::int64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  return made(exponent >= 0 ? Number(Integer(significand << static_cast<unsigned>(exponent)), 1)
                            : Number(significand, power(-exponent)));
}

Rational Rational::power_of_two(std::int64_t exponent) {
  return made(exponent >= 0 ? Number(power(exponent), 1) : Number(Integer(1), power(-exponent)));
}

Rational& Rational::operator+=(const Rational& x) {
  get(*this) += get(x);
  return *this;
}
Rational& Rational::operator-=(const Rational& x) {
  get(*this) -= get(x);
  return *this;
}
Rational& Rational::operator*=(const Rational& x) {
  get(*this) *= get(x);
  return *this;
}
Rational& Rational::operator/=(const Rational& x) {
  get(*this) /= get(x);
  return *this;
}
Rational Rational::operator-() const { return made(-get(*this)); }
Rational operator+(const Rational& a, const Rational& b) { return Rational(a) += b; }
Rational operator-(const Rational& a, const Rational& b) { return Rational(a) -= b; }
Rational operator*(const Rational& a, const Rational& b) { return Rational(a) *= b; }
Rational operator/(const Rational& a, const Rational& b) { return Rational(a) /= b; }
bool operator==(const Rational& a, const Rational& b) { return get(a) == get(b); }
std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  return get(a).compare(get(b)) <=> 0;
}
Rational abs(const Rational& x) { return x < 0 ? -x : x; }

std::int64_t Rational::floor() const {
  const Integer n = numerator(get(*this)), d = denominator(get(*this));
  Integer quotient, rest;
  divide_qr(n, d, quotient, rest);  // rounds to zero
  if (rest < 0) --quotient;
  const auto result = static_cast<std::int64_t>(quotient);
  if (quotient != result) throw std::logic_error("not an integer of 64 bits");
  return result;
}

double Rational::approximate() const { return static_cast<double>(get(*this)); }
std::string Rational::str() const { return get(*this).str(); }
std::ostream& operator<<(std::ostream& out, const Rational& x) { return out << x.str(); }

Dyadic dyadic(const Rational& x) {
  if (x == 0) return {};
  const Integer n = numerator(get(x)), d = denominator(get(x));
  // 2^(shift - 1) < n / d < 2^(shift + 1); two more than 128 bits of quotient, then the leading
  // 128.
  const std::int64_t shift = static_cast<std::int64_t>(msb(n)) - static_cast<std::int64_t>(msb(d));
  const std::int64_t exponent = shift - 129;
  Integer quotient = exponent < 0 ? Integer(n << static_cast<unsigned>(-exponent)) : n;
  const Integer divisor = exponent < 0 ? d : Integer(d << static_cast<unsigned>(exponent));
  Integer rest;
  divide_qr(Integer(quotient), divisor, quotient, rest);
  const unsigned drop = static_cast<unsigned>(msb(quotient)) - 127;
  const Integer kept = quotient >> drop;
  Dyadic result{exponent + drop + 127, wide(kept), false};
  result.sticky = rest != 0 || Integer(kept << drop) != quotient;
  return result;
}

Rational rational(const Dyadic& x) {
  if (x.sticky) throw std::logic_error("a rounded key has no exact value");
  const std::int64_t exponent = x.lead - 127;
  if (x.zero()) return 0;
  Integer n = integer(x.bits);
  if (exponent >= 0) return made(Number(Integer(n << static_cast<unsigned>(exponent)), 1));
  // Take the common powers of two out first: a quick way to the reduced fraction.
  const auto common = std::min<std::int64_t>(-exponent, static_cast<std::int64_t>(lsb(n)));
  n >>= static_cast<unsigned>(common);
  return made(Number(n, power(-exponent - common)));
}

}  // namespace numemu::oracle
