// Bisection with bounds: most of the sample is never looked at.
#include "emu/stats/kolmogorov.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace numemu::stats {
namespace {

/// Both functions rise, so that the distance between two values of the sample is bounded by those
/// at their ends: intervals that cannot exceed the largest distance so far are passed over.
class Supremum {
 public:
  Supremum(const std::vector<float>& sorted, const Density& density)
      : sorted_(sorted),
        density_(density),
        n_(static_cast<std::int64_t>(sorted.size())),
        jump_(density.zero_mass()) {}

  double find(double distance) {
    distance_ = distance;
    const double first = look(0), last = look(n_ - 1);
    search(0, first, n_ - 1, last);
    return distance_;
  }

 private:
  /// F computed in float64 is not quite monotone.
  static constexpr double kSlack = 1e-9;

  /// Takes in the distances at value i, and returns F there.
  double look(std::int64_t i) {
    const float value = sorted_[i];
    const double right = density_.cdf(value), left = value == 0 ? right - jump_ : right;
    if (i == 0 || sorted_[i - 1] != value)
      distance_ = std::max(distance_, std::abs(static_cast<double>(i) / n_ - left));
    if (i == n_ - 1 || sorted_[i + 1] != value)
      distance_ = std::max(distance_, std::abs(static_cast<double>(i + 1) / n_ - right));
    return right;
  }
  /// The values between a and b, where F is fa and fb.
  void search(std::int64_t a, double fa, std::int64_t b, double fb) {
    if (b - a < 2 || sorted_[a] == sorted_[b]) return;
    const double low = sorted_[a] == 0 ? fa - jump_ : fa;
    const double bound =
        std::max(static_cast<double>(b) / n_ - low, fb - static_cast<double>(a + 1) / n_);
    if (bound < distance_ - kSlack) return;
    const std::int64_t middle = a + (b - a) / 2;
    const double f = look(middle);
    search(a, fa, middle, f);
    search(middle, f, b, fb);
  }

  const std::vector<float>& sorted_;
  const Density& density_;
  const std::int64_t n_;
  const double jump_;
  double distance_ = 0;
};

}  // namespace

double ks_distance(const std::vector<float>& sorted, const Density& density) {
  const auto n = static_cast<std::int64_t>(sorted.size());
  const double jump = density.zero_mass();
  // Between two values of the sample both functions are monotone (F may jump at zero only if the
  // sample has no zero: then the jump is compared from both sides as well), so the supremum is at a
  // value, from its left or its right.
  double distance = 0;
  if (jump > 0) {
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), 0.0F) - sorted.begin();
    const auto upto = std::upper_bound(sorted.begin(), sorted.end(), 0.0F) - sorted.begin();
    const double at_zero = density.cdf(0);
    distance = std::max(std::abs(static_cast<double>(below) / n - (at_zero - jump)),
                        std::abs(static_cast<double>(upto) / n - at_zero));
  }
  return Supremum(sorted, density).find(distance);
}

double ks_threshold(std::int64_t n) { return 0.03 + 1.36 / std::sqrt(static_cast<double>(n)); }

}  // namespace numemu::stats
