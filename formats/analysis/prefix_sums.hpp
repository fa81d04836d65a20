// Sums of the first i of ascending numbers and of their squares, whose differences keep their
// relative accuracy.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>

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

}  // namespace numemu
