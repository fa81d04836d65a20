// The lognormal density of both signs: partial moments that neither overflow nor lose the tails.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "formats/analysis/density.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu {
namespace {

class Lognormal final : public Density {
 public:
  Lognormal(double mu, double sigma, double positive)
      : mu_(mu), sigma_(sigma), positive_(positive) {}

  std::string name() const override {
    return fmt::format("lognormal({:.6g}, {:.6g}, {:.6g})", mu_, sigma_, positive_);
  }

  double cdf(double x) const override {
    if (x > 0) return (1 - positive_) + positive_ * normal::cdf((portable::log(x) - mu_) / sigma_);
    if (x < 0) return (1 - positive_) * normal::cdf((mu_ - portable::log(-x)) / sigma_);
    return 1 - positive_;
  }

  Moments moments(double low, double high) const override {
    Moments sum{0, 0, 0};
    if (!(low < high)) return sum;
    if (positive_ > 0 && high > 0) add(std::fmax(low, 0), high, positive_, 1, &sum);
    if (positive_ < 1 && low < 0) add(std::fmax(-high, 0), -low, 1 - positive_, -1, &sum);
    return sum;
  }

  double pdf(double x) const override {
    if (x == 0) return 0;
    const double weight = x > 0 ? positive_ : 1 - positive_;
    return weight * normal::pdf(z(std::abs(x))) / (std::abs(x) * sigma_);
  }

  std::vector<double> knots() const override {
    // x^2 times the density peaks at z = 2 sigma; 9.5 further out 1e-20 of it is left. Neighbours
    // are at most half a sigma and a factor of two apart.
    const double reach = 2 * sigma_ + 9.5;
    const double step = std::fmin(sigma_ / 2, std::numbers::ln2);
    const int count = static_cast<int>(std::ceil(reach * sigma_ / step));
    std::vector<double> points;
    for (int k = count; positive_ < 1 && k >= -count; --k)
      points.push_back(-portable::exp(mu_ + k * step));
    for (int k = -count; positive_ > 0 && k <= count; ++k)
      points.push_back(portable::exp(mu_ + k * step));
    return points;
  }

 private:
  void add(double a, double b, double weight, int sign, Moments* sum) const {
    sum->p0 += weight * partial(0, a, b);
    sum->p1 += sign * weight * partial(1, a, b);
    sum->p2 += weight * partial(2, a, b);
  }

  /// Integral of x^k over [a, b] of exp(N(mu, sigma)), 0 <= a < b. It is exp(k mu + k^2 sigma^2 /
  /// 2) times the normal mass of z - k sigma; each end is taken from the tail it lies in.
  double partial(int k, double a, double b) const {
    const double ta = tail_argument(k, a), tb = tail_argument(k, b);
    if (tb >= 0) return tail(k, b, tb) - tail(k, a, ta);
    if (ta <= 0) return tail(k, a, -ta) - tail(k, b, -tb);
    const double total = portable::exp(k * mu_ + k * k * sigma_ * sigma_ / 2);
    return total - tail(k, a, ta) - tail(k, b, -tb);
  }

  double z(double x) const { return (portable::log(x) - mu_) / sigma_; }

  double tail_argument(int k, double x) const {
    return (k * sigma_ - z(x)) * (std::numbers::sqrt2 / 2);
  }

  /// The integral of x^k on the side of x away from the bulk, t >= 0 its distance:
  /// exp(k mu + k^2 sigma^2 / 2) erfc(t) / 2 rewritten as x^k exp(-z^2 / 2) scaled_erfc(t) / 2,
  /// free of overflow.
  double tail(int k, double x, double t) const {
    if (x == 0 || std::isinf(x)) return 0;
    const double zx = z(x);
    const double power = k == 0 ? 1 : k == 1 ? x : x * x;
    return power * portable::exp(-zx * zx / 2) * normal::scaled_erfc(t) / 2;
  }

  double mu_, sigma_, positive_;
};

}  // namespace

std::unique_ptr<Density> lognormal_density(double mu, double sigma, double positive) {
  if (!std::isfinite(mu) || !std::isfinite(sigma) || !(sigma > 0) ||
      !(positive >= 0 && positive <= 1)) {
    throw Error(fmt::format(
        "lognormal density: mu {}, sigma {}, positive {}, expected finite, sigma > 0, positive in "
        "[0, 1]",
        mu, sigma, positive));
  }
  return std::make_unique<Lognormal>(mu, sigma, positive);
}

}  // namespace numemu
