#include "policies/calibrate/magnitude_histogram.hpp"

#include <algorithm>
#include <cmath>

#include "formats/scaling/scale_rule.hpp"

namespace numemu::policies {
namespace {

/// The least power of two above a positive number.
double power_above(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, exponent);
}

/// 2^shift neighbours become one.
void merge(std::vector<std::int64_t>& bins, int shift) {
  for (std::size_t i = 1; i < bins.size(); ++i) {
    const std::size_t to = i >> shift;
    bins[to] += bins[i];
    bins[i] = 0;
  }
}

}  // namespace

void MagnitudeHistogram::grow(double largest) {
  largest_ = std::max(largest_, largest);
  const double range = power_above(largest_);
  if (range <= range_) return;
  if (range_ > 0) {
    const int shift = std::min(30, std::ilogb(range / range_));
    merge(positive_, shift);
    merge(negative_, shift);
  }
  range_ = range;
}

void MagnitudeHistogram::add(const float* x, std::int64_t n) {
  const double largest = largest_magnitude(x, n);
  if (largest > 0) grow(largest);
  const double per_bin = range_ > 0 ? kBins / range_ : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    ++count_;
    if (x[i] == 0) {
      ++zeros_;
      continue;
    }
    std::vector<std::int64_t>& bins = x[i] > 0 ? positive_ : negative_;
    if (bins.empty()) bins.resize(kBins);
    // Exact: a power of two times a float32, and the largest is below the range.
    ++bins[static_cast<std::size_t>(std::fabs(static_cast<double>(x[i])) * per_bin)];
  }
}

std::vector<MagnitudeHistogram::Point> MagnitudeHistogram::points() const {
  std::vector<Point> out;
  const auto middle = [&](std::size_t i) {
    return std::min((static_cast<double>(i) + 0.5) * width(), largest_);
  };
  for (std::size_t i = negative_.size(); i-- > 0;)
    if (negative_[i] > 0) out.push_back({-middle(i), negative_[i]});
  if (zeros_ > 0) out.push_back({0, zeros_});
  for (std::size_t i = 0; i < positive_.size(); ++i)
    if (positive_[i] > 0) out.push_back({middle(i), positive_[i]});
  return out;
}

std::int64_t MagnitudeHistogram::magnitudes(int bin) const {
  const auto i = static_cast<std::size_t>(bin);
  return (positive_.empty() ? 0 : positive_[i]) + (negative_.empty() ? 0 : negative_[i]) +
         (bin == 0 ? zeros_ : 0);
}

}  // namespace numemu::policies
