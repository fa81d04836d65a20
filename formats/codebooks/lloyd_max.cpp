#include "formats/codebooks/lloyd_max.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

/// A density on x >= 0 up to a factor, and ascending points between two of which a Gauss rule
/// integrates it; beyond the last one nothing matters.
struct HalfLaw {
  std::function<double(double)> density;
  std::vector<double> knots;
};

std::vector<double> even_knots(double step, double last) {
  std::vector<double> knots;
  for (double x = 0; x <= last; x += step) knots.push_back(x);
  return knots;
}

/// 0, then eight an octave.
std::vector<double> octave_knots(double first, double last) {
  std::vector<double> knots = {0};
  for (int k = 0; knots.back() < last; ++k) knots.push_back(first * portable::exp2(k / 8.0));
  return knots;
}

double parameter(std::string_view law, std::string_view text, double least, double most) {
  const auto value = number_argument(text);
  if (!value || !(*value >= least && *value <= most))
    throw Error(fmt::format("law '{}': expected a number from {} to {}, found '{}'", law, least,
                            most, text));
  return *value;
}

HalfLaw half_law(std::string_view law) {
  constexpr double kLeastSigma = 0.01, kMostSigma = 3, kLeastFreedom = 2.5, kMostFreedom = 1000;
  const std::size_t colon = std::min(law.find(':'), law.size());
  const std::string_view family = law.substr(0, colon);
  std::string_view rest = law.substr(std::min(colon + 1, law.size()));
  if (law == "normal")
    return {[](double x) { return portable::exp(-x * x / 2); }, even_knots(0.25, 16)};
  if (law == "laplace") return {[](double x) { return portable::exp(-x); }, even_knots(0.5, 80)};
  if (law == "uniform") return {[](double) { return 1.0; }, {0, 1}};
  if (family == "student-t") {
    const double nu = parameter(law, rest, kLeastFreedom, kMostFreedom);
    // x^2 times the density falls as x^(1 - nu): 2^-60 of the second moment is left at the end.
    const double last = std::min(0x1p200, portable::exp2(60 / (nu - 2) + 6));
    return {[nu](double x) { return portable::exp(-(nu + 1) / 2 * portable::log1p(x * x / nu)); },
            octave_knots(0x1p-4, last)};
  }
  if (family == "lognormal") {
    double unit = 1;
    if (rest.ends_with(":log2")) {
      rest.remove_suffix(5);
      unit = std::numbers::ln2;
    }
    const double sigma = unit * parameter(law, rest, kLeastSigma / unit, kMostSigma / unit);
    const double reach = 2 * sigma + 9.5, step = std::min(sigma / 4, std::numbers::ln2 / 8);
    std::vector<double> knots = {0};
    for (double z = -9.5 * sigma; z <= reach * sigma; z += step) knots.push_back(portable::exp(z));
    return {[sigma](double x) {
              if (x <= 0) return 0.0;
              const double z = portable::log(x) / sigma;
              return portable::exp(-z * z / 2) / x;
            },
            std::move(knots)};
  }
  throw Error(unknown_name(
      "law", law,
      {"normal", "laplace", "uniform", "student-t:NU", "lognormal:S", "lognormal:S:log2"}));
}

struct CellMoments {
  double mass = 0, first = 0;
};

/// By the Gauss rule of 10 points between neighbouring knots.
CellMoments cell_moments(const HalfLaw& law, double low, double high) {
  constexpr double kAt[] = {0.1488743389816312, 0.4333953941292472, 0.6794095682990244,
                            0.8650633666889845, 0.9739065285171717};
  constexpr double kWeight[] = {0.2955242247147529, 0.2692667193099963, 0.2190863625159820,
                                0.1494513491505806, 0.0666713443086881};
  CellMoments sum;
  high = std::min(high, law.knots.back());
  auto knot = std::upper_bound(law.knots.begin(), law.knots.end(), low);
  for (double a = low; a < high;) {
    const double b = knot == law.knots.end() ? high : std::min(*knot++, high);
    const double middle = (a + b) / 2, half = (b - a) / 2;
    for (int i = 0; i < 5; ++i) {
      for (const double x : {middle - half * kAt[i], middle + half * kAt[i]}) {
        const double weight = half * kWeight[i] * law.density(x);
        sum.mass += weight;
        sum.first += weight * x;
      }
    }
    a = b;
  }
  return sum;
}

/// Where the integral of the density's cube root reaches the shares (i + first) / (count + first -
/// 1/2) of its whole.
std::vector<double> companded(const HalfLaw& law, int count, double first) {
  constexpr int kSteps = 32;  // of each interval between knots
  std::vector<double> x = {law.knots[0]}, integral = {0};
  for (std::size_t k = 1; k < law.knots.size(); ++k) {
    const double low = law.knots[k - 1], step = (law.knots[k] - low) / kSteps;
    for (int i = 0; i < kSteps; ++i) {
      const double density = law.density(low + (i + 0.5) * step);
      x.push_back(low + (i + 1) * step);
      integral.push_back(integral.back() +
                         (density > 0 ? step * portable::pow(density, 1.0 / 3) : 0));
    }
  }
  std::vector<double> levels;
  for (int i = 0; i < count; ++i) {
    const double wanted = integral.back() * (i + first) / (count + first - 0.5);
    const auto at = std::upper_bound(integral.begin(), integral.end(), wanted);
    const auto k = static_cast<std::size_t>(
        std::min<std::ptrdiff_t>(at - integral.begin(), std::ssize(integral) - 1));
    const double gap = integral[k] - integral[k - 1];
    levels.push_back(x[k - 1] +
                     (gap > 0 ? (x[k] - x[k - 1]) * (wanted - integral[k - 1]) / gap : 0));
  }
  return levels;
}

bool ascending(const std::vector<double>& levels) {
  return levels.front() > 0 &&
         std::adjacent_find(levels.begin(), levels.end(), std::greater_equal<>()) == levels.end();
}

/// The levels above zero, found in place. A level's cell ends in the middle to its neighbours; the
/// first one's begins at zero, or in the middle to a level at zero.
class Solver {
 public:
  Solver(const HalfLaw& law, bool level_at_zero, std::vector<double>& levels)
      : law_(law), y_(levels), zero_(level_at_zero), n_(levels.size()) {}

  void step_of_lloyd() {
    measure();
    for (std::size_t i = 0; i < n_; ++i)
      if (cells_[i].mass > 0) y_[i] = cells_[i].first / cells_[i].mass;
  }
  /// A step of Newton's method for mass * level = first moment. Where the error would not fall, or
  /// has no minimum there, masses are added to the matrix (Levenberg): with many of them the step
  /// is a short one of Lloyd's. Returns the largest relative change.
  double step_of_newton() {
    measure();
    const std::vector<double> before = y_;
    const double error = error_less_signal();
    std::vector<double> diagonal(n_), beside(n_), force(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      // Moving the end between two levels by half a step moves the density there times their gap.
      const double up = i + 1 < n_ ? (y_[i + 1] - y_[i]) * law_.density(ends_[i + 1]) / 4 : 0;
      const double down = i > 0   ? (y_[i] - y_[i - 1]) * law_.density(ends_[i]) / 4
                          : zero_ ? y_[0] * law_.density(ends_[0]) / 4
                                  : 0;
      diagonal[i] = cells_[i].mass - up - down;
      beside[i] = -up;
      force[i] = cells_[i].first - cells_[i].mass * y_[i];
    }
    std::vector<double> mass(n_);
    for (std::size_t i = 0; i < n_; ++i) mass[i] = cells_[i].mass;
    for (;; added_ = std::max(2 * added_, 0.01)) {
      std::vector<double> step = force;
      if (solve(diagonal, beside, mass, step)) {
        double change = 0;
        for (std::size_t i = 0; i < n_; ++i) {
          y_[i] = before[i] + step[i];
          change = std::max(change, std::abs(step[i] / before[i]));
        }
        constexpr double kRounding = 1e-14;  // of the sums of an error
        if (ascending(y_)) {
          measure();
          if (error_less_signal() <= error + kRounding * std::abs(error)) {
            added_ = added_ < 0.02 ? 0 : added_ / 4;
            return change;
          }
        }
        y_ = before;
        if (change < 1e-12) return change;
      }
    }
  }

 private:
  /// The MSE less the mean square, over both signs' half.
  double error_less_signal() const {
    double sum = 0;
    for (std::size_t i = 0; i < n_; ++i)
      sum += y_[i] * (y_[i] * cells_[i].mass - 2 * cells_[i].first);
    return sum;
  }
  /// x of a symmetric tridiagonal matrix whose diagonal grows by added_ * mass; false unless it is
  /// positive definite.
  bool solve(std::vector<double> diagonal, const std::vector<double>& beside,
             const std::vector<double>& mass, std::vector<double>& x) const {
    for (std::size_t i = 0; i < n_; ++i) {
      diagonal[i] += added_ * mass[i];
      if (i > 0) {
        const double share = beside[i - 1] / diagonal[i - 1];
        diagonal[i] -= share * beside[i - 1];
        x[i] -= share * x[i - 1];
      }
      if (!(diagonal[i] > 0)) return false;
    }
    for (std::size_t i = n_; i-- > 0;) {
      if (i + 1 < n_) x[i] -= beside[i] * x[i + 1];
      x[i] /= diagonal[i];
    }
    return true;
  }
  void measure() {
    ends_.assign(n_ + 1, law_.knots.back());
    ends_[0] = zero_ ? y_[0] / 2 : 0;
    for (std::size_t i = 1; i < n_; ++i) ends_[i] = (y_[i - 1] + y_[i]) / 2;
    cells_.resize(n_);
    for (std::size_t i = 0; i < n_; ++i) cells_[i] = cell_moments(law_, ends_[i], ends_[i + 1]);
  }

  const HalfLaw& law_;
  std::vector<double>& y_;
  bool zero_;
  std::size_t n_;
  std::vector<double> ends_;
  std::vector<CellMoments> cells_;
  double added_ = 0;
};

}  // namespace

std::vector<double> lloyd_max(std::string_view text, int levels) {
  if (levels < 2 || levels > kMostLevels)
    throw Error(fmt::format("law '{}': {} levels, expected 2 to {}", text, levels, kMostLevels));
  constexpr int kFirstSteps = 20, kMostSteps = 500;
  constexpr double kConverged = 1e-13;
  const HalfLaw law = half_law(text);
  const bool zero = levels % 2 != 0;
  std::vector<double> half = companded(law, levels / 2, zero ? 1 : 0.5);
  Solver solver(law, zero, half);
  for (int i = 0; i < kFirstSteps; ++i) solver.step_of_lloyd();
  double change = 1;
  for (int i = 0; i < kMostSteps && change > kConverged; ++i) change = solver.step_of_newton();
  if (!(change < 1e-9))
    throw Error(fmt::format("law '{}': no optimum of {} levels was found", text, levels));
  std::vector<double> all;
  for (std::size_t i = half.size(); i-- > 0;) all.push_back(-half[i]);
  if (zero) all.push_back(0);
  all.insert(all.end(), half.begin(), half.end());
  return all;
}

}  // namespace numemu
