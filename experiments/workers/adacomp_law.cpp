#include "experiments/workers/adacomp_law.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::adacomp {

std::int64_t code_bits(std::int64_t bin) { return bin <= 64 ? 8 : 16; }

double rate(std::int64_t bin, double sent) {
  return 32.0 * static_cast<double>(bin) / (static_cast<double>(code_bits(bin)) * sent);
}

double first_sent(std::int64_t bin) {
  constexpr double kStep = 0x1p-9, kEnd = 9;
  const auto n = static_cast<double>(bin);
  double sum = 0;
  for (double m = kStep; m < kEnd; m += kStep) {
    const double below = normal::within(m), middle = below - normal::within(m / 2);
    const double others = (n - 1) * middle / below;  // of at least half the largest
    sum += kStep * 2 * normal::pdf(m) * n * portable::pow(below, n - 1) * (1 + others);
  }
  return sum;
}

namespace {

constexpr int kPerUnit = 8;              // cells of the grid in a deviation of the gradient
constexpr int kHalf = 64 * kPerUnit;     // of the residual, on either side of zero
constexpr int kGradient = 8 * kPerUnit;  // of the gradient; beyond, 1e-15 of its law
constexpr int kSum = kHalf + kGradient;  // of G = residual + gradient
constexpr double kSettled = 1e-7;        // relative change of a step
constexpr int kMostSteps = 4000;         // bins of 500 take 400

/// Masses of cells -half to half.
class Grid {
 public:
  explicit Grid(int half) : half_(half), mass_(static_cast<std::size_t>(2 * half + 1)) {}
  int half() const { return half_; }
  double& operator[](int cell) { return mass_[static_cast<std::size_t>(cell + half_)]; }
  double operator[](int cell) const { return mass_[static_cast<std::size_t>(cell + half_)]; }
  /// Mass at a place between two cells is divided between them; beyond the end it stays there.
  void add(double place, double mass) {
    const double inside = std::clamp(place, -double(half_), double(half_));
    const int cell = std::min(static_cast<int>(std::floor(inside)), half_ - 1);
    (*this)[cell] += mass * (cell + 1 - inside);
    (*this)[cell + 1] += mass * (inside - cell);
  }

 private:
  int half_;
  std::vector<double> mass_;
};

Grid normal_gradient() {
  Grid law(kGradient);
  double sum = 0;
  for (int i = -kGradient; i <= kGradient; ++i) sum += law[i] = normal::pdf(double(i) / kPerUnit);
  for (int i = -kGradient; i <= kGradient; ++i) law[i] /= sum;
  return law;
}

}  // namespace

SteadyState steady_state(std::int64_t bin) {
  const auto n = static_cast<double>(bin);
  const Grid gradient = normal_gradient();
  Grid residual(kHalf);
  residual[0] = 1;
  SteadyState state;
  for (int step = 0; step < kMostSteps; ++step) {
    Grid sum(kSum);
    for (int r = -kHalf; r <= kHalf; ++r) {
      if (residual[r] == 0) continue;
      for (int w = -kGradient; w <= kGradient; ++w) sum[r + w] += residual[r] * gradient[w];
    }
    // By |G|: the chance that all other elements are below, a tie counted half; E of the largest.
    std::vector<double> others(kSum + 1);
    double below = 0, largest = 0;
    for (int g = 0; g <= kSum; ++g) {
      const double here = g == 0 ? sum[0] : sum[g] + sum[-g];
      others[static_cast<std::size_t>(g)] = portable::pow(below + here / 2, n - 1);
      below = std::min(1.0, below + here);
      largest += 1 - portable::pow(below, n);
    }
    Grid next(kHalf);
    double sent = 0;
    for (int r = -kHalf; r <= kHalf; ++r) {
      if (residual[r] == 0) continue;
      for (int w = -kGradient; w <= kGradient; ++w) {
        const int g = r + w, h = g + w;
        const double mass = residual[r] * gradient[w];
        const double goes =
            std::abs(h) < std::abs(g)
                ? 0
                : mass * others[static_cast<std::size_t>(std::min(std::abs(h), kSum))];
        sent += goes;
        next.add(g, mass - goes);
        next.add(g > 0 ? g - largest : g + largest, goes);
      }
    }
    const bool settled = std::fabs(sent * n - state.sent) < kSettled * state.sent;
    state.sent = sent * n;
    state.scale = largest / kPerUnit;
    residual = std::move(next);
    if (settled) break;
  }
  double squares = 0;
  for (int r = -kHalf; r <= kHalf; ++r) squares += residual[r] * r * r;
  state.residual = std::sqrt(squares) / kPerUnit;
  return state;
}

}  // namespace numemu::experiments::adacomp
