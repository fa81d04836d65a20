// Sums of the first i terms whose differences keep their relative accuracy.
#pragma once
#include <cstddef>
#include <vector>

namespace numemu {

/// Each sum is held as the sum of two doubles.
class PrefixSums {
 public:
  PrefixSums() = default;
  /// Of term(0) to term(n - 1).
  template <class Term>
  PrefixSums(std::size_t n, const Term& term) : high_(n + 1), low_(n + 1) {
    double high = 0, low = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double next = term(i), sum = high + next;
      const double other = sum - high;  // Knuth's exact error of a sum
      low += (high - (sum - other)) + (next - other);
      high = sum;
      high_[i + 1] = high;
      low_[i + 1] = low;
    }
  }
  /// Of the terms [first, last).
  double between(std::size_t first, std::size_t last) const {
    return (high_[last] - high_[first]) + (low_[last] - low_[first]);
  }

 private:
  std::vector<double> high_{0}, low_{0};
};

}  // namespace numemu
