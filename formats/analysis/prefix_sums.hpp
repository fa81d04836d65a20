// Sums of the first i terms whose differences keep their relative accuracy.
#pragma once
#include <cstddef>
#include <memory>

namespace numemu {

/// Each sum is held as the sum of two doubles.
class PrefixSums {
 public:
  PrefixSums() = default;
  /// Of term(0) to term(n - 1).
  template <class Term>
  PrefixSums(std::size_t n, const Term& term)
      : sums_(std::make_unique_for_overwrite<Sum[]>(n + 1)) {
    Sum all{0, 0};
    sums_[0] = all;
    for (std::size_t i = 0; i < n; ++i) {
      const double next = term(i), sum = all.high + next;
      const double other = sum - all.high;  // Knuth's exact error of a sum
      all.low += (all.high - (sum - other)) + (next - other);
      all.high = sum;
      sums_[i + 1] = all;
    }
  }
  /// Of the terms [first, last).
  double between(std::size_t first, std::size_t last) const {
    return (sums_[last].high - sums_[first].high) + (sums_[last].low - sums_[first].low);
  }

 private:
  struct Sum {
    double high, low;
  };
  std::unique_ptr<Sum[]> sums_;
};

}  // namespace numemu
