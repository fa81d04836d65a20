// Normal, Laplace, uniform and Student's densities.
#include "formats/analysis/density.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/gamma.hpp"
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

// Densities made from another: with a point mass at zero, or restricted to an interval.

namespace {

class WithZeroMass final : public Density {
 public:
  WithZeroMass(std::unique_ptr<Density> inner, double p) : inner_(std::move(inner)), p_(p) {}
  std::string name() const override {
    return fmt::format("{} with {:.6g} at zero", inner_->name(), p_);
  }
  double cdf(double x) const override { return (1 - p_) * inner_->cdf(x) + (x >= 0 ? p_ : 0); }
  double zero_mass() const override { return p_ + (1 - p_) * inner_->zero_mass(); }
  Moments moments(double low, double high) const override {
    const Moments m = inner_->moments(low, high);
    return {(1 - p_) * m.p0, (1 - p_) * m.p1, (1 - p_) * m.p2};
  }
  double pdf(double x) const override { return (1 - p_) * inner_->pdf(x); }
  std::vector<double> knots() const override { return inner_->knots(); }

 private:
  std::unique_ptr<Density> inner_;
  double p_;
};

class Truncated final : public Density {
 public:
  Truncated(std::shared_ptr<const Density> inner, double low, double high)
      : inner_(std::move(inner)), low_(low), high_(high) {
    zero_ = low <= 0 && 0 <= high ? inner_->zero_mass() : 0;
    mass_ = inner_->moments(low, high).p0 + zero_;
    below_ = inner_->cdf(low) - (low == 0 ? zero_ : 0);
    if (!(mass_ > 0)) {
      throw Error(
          fmt::format("truncated density: {} has no mass in [{}, {}]", inner_->name(), low, high));
    }
  }
  std::string name() const override {
    return fmt::format("{} on [{:.6g}, {:.6g}]", inner_->name(), low_, high_);
  }
  double cdf(double x) const override {
    if (x < low_) return 0;
    if (x >= high_) return 1;
    return std::clamp((inner_->cdf(x) - below_) / mass_, 0.0, 1.0);
  }
  double zero_mass() const override { return zero_ / mass_; }
  Moments moments(double low, double high) const override {
    const Moments m = inner_->moments(std::max(low, low_), std::min(high, high_));
    return {m.p0 / mass_, m.p1 / mass_, m.p2 / mass_};
  }
  double pdf(double x) const override { return x < low_ || x > high_ ? 0 : inner_->pdf(x) / mass_; }
  std::vector<double> knots() const override {
    std::vector<double> points;
    const auto add = [&](double x) {
      if (std::isfinite(x) && x >= low_ && x <= high_) points.push_back(x);
    };
    add(low_);
    for (const double x : inner_->knots()) {
      if (x > low_ && x < high_) add(x);
    }
    add(high_);
    return points;
  }

 private:
  std::shared_ptr<const Density> inner_;
  double low_, high_, zero_ = 0, mass_ = 0, below_ = 0;
};

}  // namespace

std::unique_ptr<Density> with_zero_mass(std::unique_ptr<Density> inner, double p) {
  if (!(p >= 0 && p <= 1)) throw Error(fmt::format("zero mass {}, expected a probability", p));
  return std::make_unique<WithZeroMass>(std::move(inner), p);
}

std::unique_ptr<Density> truncated(std::shared_ptr<const Density> inner, double low, double high) {
  return std::make_unique<Truncated>(std::move(inner), low, high);
}

// The lognormal density of both signs: partial moments that neither overflow nor lose the tails.

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

namespace {

class Student final : public Density {
 public:
  explicit Student(double nu)
      : nu_(nu),
        factor_(portable::exp(portable::log_gamma((nu + 1) / 2) - portable::log_gamma(nu / 2)) /
                std::sqrt(nu * std::numbers::pi)) {}

  std::string name() const override { return fmt::format("student-t({:.6g})", nu_); }
  double cdf(double x) const override { return x < 0 ? tail(-x) : 1 - tail(x); }
  Moments moments(double low, double high) const override {
    if (!(low < high)) return {0, 0, 0};
    // (nu + x^2) f(x) has the derivative (1 - nu) x f(x), and x times it leaves x^2 f(x).
    const double p0 = low >= 0    ? tail(low) - tail(high)
                      : high <= 0 ? tail(-high) - tail(-low)
                                  : 1 - tail(-low) - tail(high);
    const double a = edge(low), b = edge(high);
    return {p0, (a - b) / (nu_ - 1),
            (nu_ * p0 - (std::isfinite(high) ? high * b : 0) + (std::isfinite(low) ? low * a : 0)) /
                (nu_ - 2)};
  }
  double pdf(double x) const override {
    return factor_ * portable::exp(-(nu_ + 1) / 2 * portable::log1p(x / nu_ * x));
  }
  std::vector<double> knots() const override {
    // x^2 times the density falls as x^(1 - nu): 2^-60 of the second moment is left at the end.
    constexpr int kFirst = -4, kPerOctave = 8, kMostOctaves = 200;
    const int octaves = std::min(kMostOctaves, static_cast<int>(60 / (nu_ - 2)) + 6 - kFirst);
    std::vector<double> points = {0};
    for (int k = 0; k <= octaves * kPerOctave; ++k) {
      const double x = std::ldexp(portable::exp2(static_cast<double>(k) / kPerOctave), kFirst);
      points.push_back(x);
      points.push_back(-x);
    }
    std::sort(points.begin(), points.end());
    return points;
  }

 private:
  /// P(T > x), x >= 0.
  double tail(double x) const {
    if (std::isinf(x)) return 0;
    const double share = 1 / (1 + x / nu_ * x);
    return portable::beta_shares(nu_ / 2, 0.5, share, x / nu_ * x * share).below / 2;
  }
  double edge(double x) const { return std::isfinite(x) ? (nu_ + x * x) * pdf(x) : 0; }

  double nu_, factor_;
};

}  // namespace

std::unique_ptr<Density> student_density(double nu) {
  if (!(nu > 2)) {
    throw Error(
        fmt::format("student-t density: NU is {}, expected more than 2: the variance of "
                    "others is infinite",
                    nu));
  }
  return std::make_unique<Student>(nu);
}

}  // namespace numemu
