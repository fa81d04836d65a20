// The squared error of a format as a function of its scale: of numbers that are sorted once, so
// that any format and scale costs a step per value of the format, and under a law.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/analysis/cells.hpp"
#include "formats/analysis/density.hpp"
#include "formats/analysis/outcome_law.hpp"

namespace numemu {

// Where a property of sorted elements ends.

/// The first index from `first` on that is not inside, `end` where there is none: steps that
/// double, then bisection, because most runs are short.
template <class Inside>
std::size_t first_outside(std::size_t first, std::size_t end, const Inside& inside) {
  std::size_t last = first, step = 1;
  while (last < end && inside(last)) {
    first = last + 1;
    last += step;
    step *= 2;
  }
  last = std::min(last, end);
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (inside(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/// Each sum is held as the sum of two doubles, of every kSpacing-th i; between two of them it is
/// continued, so that what is read does not depend on the spacing.
template <class T>
class PrefixSums {
 public:
  struct Moments {
    double first, second;  ///< sums of x and of x^2
  };

  PrefixSums() = default;
  PrefixSums(const T* x, std::size_t n) : sums_(std::make_unique<Sums[]>(n / kSpacing + 1)) {
    Sums all;
    const std::size_t whole = n / kSpacing * kSpacing;
    for (std::size_t i = 0; i < whole; i += kSpacing) {
      sums_[i / kSpacing] = all;
      for (std::size_t k = i; k < i + kSpacing; ++k) all.add(static_cast<double>(x[k]));
    }
    sums_[whole / kSpacing] = all;
  }
  /// Of x[first..last), x being the array that was summed.
  Moments between(const T* x, std::size_t first, std::size_t last) const {
    const Sums low = before(x, first), high = before(x, last);
    return {high.from(low, 0), high.from(low, 1)};
  }

 private:
  static constexpr std::size_t kSpacing = 8;

  /// Of x and of x^2, side by side: the same operations, which the compiler does in one vector.
  struct Sums {
    double high[2] = {}, low[2] = {};
    void add(double x) {
      const double next[2] = {x, x * x};
      for (int k = 0; k < 2; ++k) {
        const double sum = high[k] + next[k];
        const double other = sum - high[k];  // Knuth's exact error of a sum
        low[k] += (high[k] - (sum - other)) + (next[k] - other);
        high[k] = sum;
      }
    }
    double from(const Sums& o, int k) const { return (high[k] - o.high[k]) + (low[k] - o.low[k]); }
  };

  Sums before(const T* x, std::size_t i) const {
    Sums sums = sums_[i / kSpacing];
    for (std::size_t k = i - i % kSpacing; k < i; ++k) sums.add(static_cast<double>(x[k]));
    return sums;
  }

  std::unique_ptr<Sums[]> sums_;
};

class SampleMse {
 public:
  /// x[0..n), all finite, n > 0.
  SampleMse(const double* x, std::int64_t n);
  /// The same where number i has a scale of its own, scales[i] >= 0, that of at() times it. Scales
  /// that differ by a common factor share one sample; a scale of 0 makes its number zero.
  SampleMse(const float* x, const double* scales, std::int64_t n);

  /// Mean of (scale * Q(x / scale) - x)^2 under a law whose outcomes are finite; stochastic ones in
  /// the limit of many random bits. Relative error about 4^M * 1e-16 for M mantissa bits, and with
  /// scales 2^-52 of the signal for each piece of the law.
  double at(const OutcomeLaw&, double scale) const;
  double largest() const;  ///< max |x| of a sample without scales
  double signal() const;   ///< mean of x^2

 private:
  /// Sums over numbers x = s v with the scale s: s^2, s x, x^2.
  struct Sums {
    double weight = 0, first = 0, second = 0;
  };
  Sums between(std::size_t first, std::size_t last) const;

  std::vector<double> sorted_;  ///< with scales the v
  PrefixSums<double> sums_;
  std::vector<Sums> scaled_;  ///< of the first i; empty without scales
  double lost_ = 0;           ///< sum of x^2 where the scale is 0
  double count_ = 0;
};

/// The MSE of a format that saturates, under a law and a rounding without random bits, by partial
/// moments of the cells; where format and law are symmetric, of the positive half. Much faster than
/// mean_square_error(), but narrow cells lose digits to cancellation.
class CellMse {
 public:
  /// The density must outlive it.
  CellMse(const Format&, const Rounding&, const Density&, bool symmetric_law);

  double operator()(double scale) const;
  /// For numbers of that root mean square and that largest magnitude: the best power of two, or
  /// the best scale, as a float32 number, of 16 an octave beside that power and golden sections
  /// around the two lowest minima.
  double best_scale(double rms, double reach, bool power_of_two) const;

 private:
  double smallest() const;
  double largest() const;

  std::vector<Cell> cells_;
  const Density& law_;
  bool half_ = false;
};

}  // namespace numemu
