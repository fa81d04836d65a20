// Densities made from another: with a point mass at zero, or restricted to an interval.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/analysis/density.hpp"
#include "formats/error.hpp"

namespace numemu {
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

}  // namespace numemu
