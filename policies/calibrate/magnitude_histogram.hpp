// A histogram of the elements of a tensor, by sign and magnitude, that grows with the tensor.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::policies {

/// 65536 equal bins of each sign up to the power of two above the largest magnitude; zeros are
/// counted apart. When a larger magnitude comes, neighbouring bins are merged, which is exact: the
/// counts depend on the elements alone, not on their order or batches. NaN and infinities are
/// ignored.
class MagnitudeHistogram {
 public:
  static constexpr int kBins = 1 << 16;

  void add(const float* x, std::int64_t n);

  std::int64_t count() const { return count_; }  ///< elements, zeros too
  double largest() const { return largest_; }    ///< exact, 0 for none
  double width() const { return range_ / kBins; }

  /// A filled bin: its middle, at most the largest magnitude, and its elements.
  struct Point {
    double value;
    std::int64_t count;
  };
  /// Filled bins in ascending order, negative ones first, 0 between.
  std::vector<Point> points() const;
  /// Elements of bin i of both signs; zeros are in bin 0.
  std::int64_t magnitudes(int bin) const;

 private:
  void grow(double largest);

  double largest_ = 0, range_ = 0;
  std::int64_t count_ = 0, zeros_ = 0;
  std::vector<std::int64_t> positive_, negative_;  ///< empty until there is one
};

}  // namespace numemu::policies
