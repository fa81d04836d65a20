// Sums as an ensemble: what a unit has beside what it should have.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "emu/unit/description.hpp"
#include "formats/random.hpp"

namespace numemu::unit {

/// Sums of one kind, equally likely or with their shares.
struct Sums {
  std::vector<double> given, exact, shares = {};
  double share(std::int64_t i) const {
    return shares.empty() ? 1 / static_cast<double>(size()) : shares[static_cast<std::size_t>(i)];
  }
  std::int64_t size() const { return static_cast<std::int64_t>(given.size()); }
};

/// A register's numbers, without its ends.
class Steps {
 public:
  explicit Steps(const Register&);
  /// The distance of neighbours, by the exponent of a number's leading bit.
  double at(int exponent) const { return std::ldexp(1.0, std::max(exponent, least_) - mantissa_); }
  /// x rounded as one rounds that number; `word` in [0, 1) decides stochastic roundings.
  double round(double x, double word) const;

 private:
  Rounding rounding_;
  int least_ = 0, mantissa_ = 0;
};

/// The error that rounding S + x to steps of u has where S is a whole number of steps: its mean and
/// mean square over the parity of S and over random words. `negative`: the sign of the result.
struct RoundingError {
  double mean = 0, square = 0;
};
RoundingError rounding_error(const Rounding&, double x, double u, bool negative);

/// Draws members of ensembles.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : source_{.seed = seed, .stream = Stream::probe} {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(source_.uniform(next_++) * static_cast<double>(n));
  }
  /// The next number of a shuffled deck of n, which is shuffled again when it is used up.
  std::int64_t from_deck(std::int64_t n);
  double word() { return source_.uniform(next_++); }

 private:
  RandomSource source_;
  std::uint64_t next_ = 0;
  std::vector<std::int64_t> deck_;
};

}  // namespace numemu::unit
