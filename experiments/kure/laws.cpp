#include "experiments/kure/laws.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::kure {
namespace {

constexpr double kEnd = std::numbers::sqrt3;  // of the uniform law of unit variance

double normal_mse(int bits, double step) {
  const double tau = std::ldexp(step, bits - 1), inside = normal::within(tau);
  return (tau * tau + 1) * (1 - inside) + step * step / 12 * inside -
         2 * tau * normal::density(tau);
}

/// The least point of a function with one minimum in [low, high], to 1e-9 of it.
template <class F>
double minimum(const F& f, double low, double high) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-9 * high) {
    const double a = high - golden * (high - low), b = low + golden * (high - low);
    (f(a) < f(b) ? high : low) = f(a) < f(b) ? b : a;
  }
  return (low + high) / 2;
}

}  // namespace

double uniform_mse(double a, int bits, double step) {
  const double tau = std::ldexp(step, bits - 1);
  if (tau > a) return step * step / 12;
  return portable::pow(a - tau, 3) / (3 * a) + std::ldexp(portable::pow(step, 3), bits) / (24 * a);
}

double mse(Law law, int bits, double step) {
  return law == Law::uniform ? uniform_mse(kEnd, bits, step) : normal_mse(bits, step);
}

double exact_mse(Law law, int bits, double step) {
  if (law == Law::normal || std::ldexp(step, bits - 1) <= kEnd) return mse(law, bits, step);
  const double level = std::nearbyint(kEnd / step), rest = kEnd - level * step;
  return (level * portable::pow(step, 3) / 12 + portable::pow(rest, 3) / 3) / kEnd;
}

double uniform_step(double a, int bits) { return 2 * a / (std::ldexp(1.0, bits) + 1); }
double published_step(double a, int bits) { return std::ldexp(a, 1 - bits); }

double best_step(Law law, int bits) {
  if (law == Law::uniform) return uniform_step(kEnd, bits);
  return minimum([&](double step) { return normal_mse(bits, step); }, std::ldexp(0.5, -bits),
                 std::ldexp(16.0, -bits));
}

double curvature(Law law, int bits, double step) {
  if (law == Law::uniform) {
    const double tau = std::ldexp(step, bits - 1);
    return std::ldexp(1.0, 2 * bits - 1) * (kEnd - tau) / kEnd +
           std::ldexp(step, bits) / (4 * kEnd);
  }
  const double h = 1e-3 * step;
  return (normal_mse(bits, step + h) - 2 * normal_mse(bits, step) + normal_mse(bits, step - h)) /
         (h * h);
}

double sensitivity(Law law, int bits, double change) {
  const double step = best_step(law, bits);
  return std::fabs(mse(law, bits, step * (1 + change)) - mse(law, bits, step));
}

std::vector<double> levels(int bits) {
  std::vector<double> all;
  for (int i = -(1 << (bits - 1)); i <= 1 << (bits - 1); ++i) all.push_back(i);
  return all;
}

}  // namespace numemu::experiments::kure
