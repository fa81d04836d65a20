// A register that adds independent addends, followed in five moments.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "emu/unit/description.hpp"
#include "formats/random.hpp"

namespace numemu::unit {

// Sums as an ensemble: what a unit has beside what it should have.

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

/// What is left of an addend where it meets the register, and of the register.
struct Meeting {
  double addend = 0;
  double grid = 0;    ///< the register is cut to whole multiples; 0: it stays
  bool down = false;  ///< toward minus infinity, else toward zero
};

/// What one addend of the law brings: its exact number, and what rounding makes of it by the
/// binade of the result.
class Addends {
 public:
  /// By member of the ensemble and binade of the register.
  using Meets = std::function<Meeting(std::int64_t member, int binade)>;
  /// `count` of them will be added.
  Addends(const Register&, const Sums&, const Meets&, double count);

  struct Cell {
    double error = 0, square = 0, product = 0;  ///< means of e, e^2 and e p; p the exact addend
  };
  struct Group {
    double share = 0, mean = 0, variance = 0;
    std::array<std::vector<Cell>, 2> by_binade = {};  ///< of positive and negative results
  };
  double mean() const { return mean_; }
  double variance() const { return variance_; }
  int first_binade() const { return first_; }
  int binades() const { return kBinades; }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  static constexpr int kBinades = 72;
  std::vector<Group> groups_;
  double mean_ = 0, variance_ = 0;
  int first_ = 0;
};

/// Moments of the register S and of its distance from the exact sum, D = S - exact.
struct WalkState {
  double mean = 0, variance = 0;            ///< of S
  double bias = 0, spread = 0, common = 0;  ///< of D: mean, variance; covariance with S
  double noise() const { return bias * bias + spread; }
};

WalkState state_of(const Sums&);
/// The first `count` additions to +0, one by one, by the register's own rounding: where sums are
/// short their laws are not normal and products may exceed them.
/// `members`: of the ensemble, 0: as many as there are addends.
Sums first_sums(const Register&, const Sums&, const Addends::Meets&, std::int64_t count, Draws&,
                std::int64_t members = 0);
/// The state after `steps` more additions. S counts as normal: in each binade of the result the
/// addend is rounded to the binade's steps, on which S lies. Where steps are many, neighbours are
/// taken together.
WalkState walk(WalkState, const Addends&, double done, double steps);
/// Members with the state's moments, on the register's steps; done by quantiles.
Sums members_of(const WalkState&, const Register&, std::int64_t count);

}  // namespace numemu::unit
