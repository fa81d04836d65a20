// Exact fractions by GMP. Boost.Multiprecision's templates take seconds to compile wherever they
// are used: one source has them.
#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace numemu::oracle {

__extension__ typedef unsigned __int128 Wide;

class Rational {
 public:
  Rational() : Rational(Whole{}) {}
  template <std::integral T>
  Rational(T x)  // NOLINT: as numbers convert
      : Rational(x < 0 ? Whole{-static_cast<Wide>(x), true} : Whole{static_cast<Wide>(x), false}) {}
  Rational(const Rational& numerator, const Rational& denominator);
  Rational(const Rational&);
  Rational(Rational&&) noexcept;
  Rational& operator=(const Rational&);
  Rational& operator=(Rational&&) noexcept;
  ~Rational();

  /// A finite float64.
  static Rational of(double);
  static Rational power_of_two(std::int64_t exponent);

  Rational& operator+=(const Rational&);
  Rational& operator-=(const Rational&);
  Rational& operator*=(const Rational&);
  Rational& operator/=(const Rational&);
  Rational operator-() const;
  friend Rational operator+(const Rational&, const Rational&);
  friend Rational operator-(const Rational&, const Rational&);
  friend Rational operator*(const Rational&, const Rational&);
  friend Rational operator/(const Rational&, const Rational&);
  friend bool operator==(const Rational&, const Rational&);
  friend std::strong_ordering operator<=>(const Rational&, const Rational&);
  friend Rational abs(const Rational&);

  /// The largest integer below or at it, which must be one of 64 bits.
  std::int64_t floor() const;
  /// About the same float64.
  double approximate() const;
  std::string str() const;

  /// What the source reads: Boost's number.
  const void* number() const { return number_; }

 private:
  struct Whole {
    Wide magnitude = 0;
    bool negative = false;
  };
  explicit Rational(Whole);

  alignas(8) std::byte number_[32];
};

std::ostream& operator<<(std::ostream&, const Rational&);

}  // namespace numemu::oracle
