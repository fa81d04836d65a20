// Normal, Laplace and uniform densities.
#include "formats/analysis/density.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu {
namespace {

using Moments = Density::Moments;

/// Moments of location + scale * U from those of U.
Moments affine(const Moments& u, double location, double scale) {
  return {u.p0, location * u.p0 + scale * u.p1,
          location * location * u.p0 + 2 * location * scale * u.p1 + scale * scale * u.p2};
}

void require_shape(const char* family, double location, double width) {
  if (!std::isfinite(location) || !std::isfinite(width) || !(width > 0)) {
    throw Error(
        fmt::format("{} density: location {} and width {}, expected finite with a positive width",
                    family, location, width));
  }
}

/// location + unit * k / 2 for k = -count..count.
std::vector<double> half_steps(double location, double unit, int count) {
  std::vector<double> points;
  for (int k = -count; k <= count; ++k) points.push_back(location + unit * k / 2);
  return points;
}

class Normal final : public Density {
 public:
  Normal(double mean, double sigma) : mean_(mean), sigma_(sigma) {}
  std::string name() const override { return fmt::format("normal({:.6g}, {:.6g})", mean_, sigma_); }
  double cdf(double x) const override { return normal::cdf((x - mean_) / sigma_); }
  Moments moments(double low, double high) const override {
    if (!(low < high)) return {0, 0, 0};
    const double a = (low - mean_) / sigma_, b = (high - mean_) / sigma_;
    const double fa = normal::pdf(a), fb = normal::pdf(b);
    const double p0 = normal::between(a, b);
    // pdf(a) - pdf(b) through expm1: the two are nearly equal in a narrow cell. Beyond 38 sigma
    // both are zero, and expm1 may be infinite.
    const bool inside = std::isfinite(a) && std::isfinite(b) && fa + fb > 0;
    const double p1 = inside ? (fa > fb ? -fa * portable::expm1((a - b) * (a + b) / 2)
                                        : fb * portable::expm1((b - a) * (a + b) / 2))
                             : fa - fb;
    const double p2 = p0 + (std::isfinite(a) ? a * fa : 0) - (std::isfinite(b) ? b * fb : 0);
    return affine({p0, p1, p2}, mean_, sigma_);
  }
  double pdf(double x) const override { return normal::pdf((x - mean_) / sigma_) / sigma_; }
  std::vector<double> knots() const override {
    constexpr int kReach = 77;  // the density underflows at 38.6 sigma
    return half_steps(mean_, sigma_, kReach);
  }

 private:
  double mean_, sigma_;
};

/// Integral of t^(k-1) exp(-t) over [0, h], k = 1, 2, 3.
double lower_gamma(int k, double h) {
  if (h < 1) {  // h^k exp(-h) sum of h^j / (k (k+1) .. (k+j)): the closed form cancels here
    double term = 1.0 / k, sum = term;
    for (int j = 1; j <= 20; ++j) sum += term *= h / (k + j);
    return sum * portable::pow(h, k) * portable::exp(-h);
  }
  if (std::isinf(h)) return k == 3 ? 2 : 1;
  switch (k) {
    case 1:
      return -portable::expm1(-h);
    case 2:
      return 1 - (1 + h) * portable::exp(-h);
    default:
      return 2 - (h * h + 2 * h + 2) * portable::exp(-h);
  }
}

class Laplace final : public Density {
 public:
  Laplace(double location, double scale) : location_(location), scale_(scale) {}
  std::string name() const override {
    return fmt::format("laplace({:.6g}, {:.6g})", location_, scale_);
  }
  double cdf(double x) const override {
    const double u = (x - location_) / scale_;
    return u < 0 ? portable::exp(u) / 2 : 1 - portable::exp(-u) / 2;
  }
  Moments moments(double low, double high) const override {
    if (!(low < high)) return {0, 0, 0};
    const double a = (low - location_) / scale_, b = (high - location_) / scale_;
    const Moments right = half(std::max(a, 0.0), std::max(b, 0.0));
    const Moments left = half(std::max(-b, 0.0), std::max(-a, 0.0));
    return affine({right.p0 + left.p0, right.p1 - left.p1, right.p2 + left.p2}, location_, scale_);
  }
  double pdf(double x) const override {
    return portable::exp(-std::abs(x - location_) / scale_) / (2 * scale_);
  }
  std::vector<double> knots() const override {
    constexpr int kReach = 160;  // exp(-80) is left
    return half_steps(location_, scale_, kReach);
  }

 private:
  /// Moments of exp(-u)/2 over [a, b], 0 <= a <= b, from u = a + t.
  static Moments half(double a, double b) {
    if (!(a < b)) return {0, 0, 0};
    const double weight = portable::exp(-a) / 2, h = b - a;
    const double g0 = lower_gamma(1, h), g1 = lower_gamma(2, h), g2 = lower_gamma(3, h);
    return {weight * g0, weight * (a * g0 + g1), weight * (a * a * g0 + 2 * a * g1 + g2)};
  }
  double location_, scale_;
};

class Uniform final : public Density {
 public:
  Uniform(double low, double high) : low_(low), high_(high) {}
  std::string name() const override { return fmt::format("uniform({:.6g}, {:.6g})", low_, high_); }
  double cdf(double x) const override { return std::clamp((x - low_) / (high_ - low_), 0.0, 1.0); }
  Moments moments(double low, double high) const override {
    const double a = std::max(low, low_), b = std::min(high, high_);
    if (!(a < b)) return {0, 0, 0};
    const double p0 = (b - a) / (high_ - low_);
    return {p0, p0 * (a + b) / 2, p0 * (a * a + a * b + b * b) / 3};
  }
  double pdf(double x) const override { return x < low_ || x > high_ ? 0 : 1 / (high_ - low_); }
  std::vector<double> knots() const override { return {low_, high_}; }

 private:
  double low_, high_;
};

}  // namespace

std::unique_ptr<Density> normal_density(double mean, double sigma) {
  require_shape("normal", mean, sigma);
  return std::make_unique<Normal>(mean, sigma);
}

std::unique_ptr<Density> laplace_density(double location, double scale) {
  require_shape("laplace", location, scale);
  return std::make_unique<Laplace>(location, scale);
}

std::unique_ptr<Density> uniform_density(double low, double high) {
  require_shape("uniform", low, high - low);
  return std::make_unique<Uniform>(low, high);
}

}  // namespace numemu
