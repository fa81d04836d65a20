// The density of Student's t.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/analysis/density.hpp"
#include "formats/error.hpp"
#include "formats/portable/gamma.hpp"
#include "formats/portable/math.hpp"

namespace numemu {
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
