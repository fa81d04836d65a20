// Sums of the first i terms whose differences keep their relative accuracy.
#pragma once
#include <cstddef>
#include <vector>

namespace numemu {

/// Each sum is held as the sum of two doubles.
class PrefixSums {
 public:
  void reserve(std::size_t n) {
    high_.reserve(n + 1);
    low_.reserve(n + 1);
  }
  void clear() {
    high_.resize(1);
    low_.resize(1);
  }
  void add(double term) {
    const double high = high_.back(), sum = high + term;
    const double other = sum - high;  // Knuth's exact error of a sum
    const double lost = (high - (sum - other)) + (term - other);
    high_.push_back(sum);
    low_.push_back(low_.back() + lost);
  }
  /// Of the terms [first, last).
  double between(std::size_t first, std::size_t last) const {
    return (high_[last] - high_[first]) + (low_[last] - low_[first]);
  }

 private:
  std::vector<double> high_{0}, low_{0};
};

}  // namespace numemu
