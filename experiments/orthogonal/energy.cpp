#include "experiments/orthogonal/energy.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/error.hpp"
#include "formats/portable/gamma.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"

namespace numemu::experiments::orthogonal {
namespace {

using policies::Matrix;

/// Rows of length 1, and the lengths.
Matrix directions(const Matrix& neurons, std::vector<double>& lengths) {
  Matrix u = neurons;
  for (std::int64_t i = 0; i < u.rows; ++i) {
    double squares = 0;
    for (std::int64_t k = 0; k < u.columns; ++k) squares += u.at(i, k) * u.at(i, k);
    lengths.push_back(std::sqrt(squares));
    for (std::int64_t k = 0; k < u.columns; ++k) u.at(i, k) /= lengths.back();
  }
  return u;
}

/// Of unit vectors; free of the cancellation in 2 - 2 cos.
double squared_distance(const Matrix& u, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < u.columns; ++k) {
    const double off = u.at(i, k) - u.at(j, k);
    sum += off * off;
  }
  return sum;
}

/// Between neighbours of |x|: a power of two.
double spacing(const Format& format, double x) {
  const double least = smallest_normal(format);
  int exponent = 0;
  std::frexp(std::max(std::fabs(x), least), &exponent);
  return std::ldexp(1.0, exponent - 1 - format.mantissa_bits);
}

}  // namespace

double energy(const Matrix& neurons, double power) {
  std::vector<double> lengths;
  const Matrix u = directions(neurons, lengths);
  double sum = 0;
  for (std::int64_t i = 0; i < u.rows; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      sum += 2 * portable::pow(squared_distance(u, i, j), -power / 2);
  return sum;
}

EnergySlopes energy_slopes(const Matrix& neurons, double power) {
  std::vector<double> lengths;
  const Matrix u = directions(neurons, lengths);
  EnergySlopes slopes{0, Matrix(u.rows, u.columns), Matrix(u.rows, u.columns)};
  for (std::int64_t i = 0; i < u.rows; ++i) {
    const double length = lengths[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < u.rows; ++j) {
      if (i == j) continue;
      const double square = squared_distance(u, i, j), cosine = 1 - square / 2;
      const double term = portable::pow(square, -power / 2);
      slopes.energy += term;
      // Both orders of the pair, along their cosine.
      const double along = 2 * power * term / square, curved = along * (power + 2) / square;
      for (std::int64_t k = 0; k < u.columns; ++k) {
        const double own = u.at(i, k), turn = (u.at(j, k) - cosine * own) / length;
        slopes.first.at(i, k) += along * turn;
        slopes.second.at(i, k) +=
            curved * turn * turn +
            along * (3 * cosine * own * own - 2 * own * u.at(j, k) - cosine) / (length * length);
      }
    }
  }
  return slopes;
}

double expected_energy(std::int64_t n, std::int64_t d, double power) {
  const auto pairs = static_cast<double>(n * (n - 1)), size = static_cast<double>(d);
  const double logarithm = (size - power - 2) * std::numbers::ln2 + portable::log_gamma(size / 2) +
                           portable::log_gamma((size - 1 - power) / 2) -
                           portable::log_gamma(size - 1 - power / 2);
  return pairs * portable::exp(logarithm) * std::numbers::inv_sqrtpi;
}

EnergyChange rounding_change(const Matrix& neurons, const Format& format, double power) {
  if (format.kind != Kind::floating)
    throw usage_error("energy under rounding: expected a floating format, not " + format.name);
  const EnergySlopes slopes = energy_slopes(neurons, power);
  EnergyChange change;
  for (std::size_t i = 0; i < neurons.data.size(); ++i) {
    const double u = spacing(format, neurons.data[i]), slope = slopes.first.data[i];
    change.mean += slopes.second.data[i] * u * u / 24;
    change.variance += slope * slope * u * u / 12;
  }
  return change;
}

Matrix rounded(const Matrix& neurons, const Format& format) {
  std::vector<float> values(neurons.data.begin(), neurons.data.end());
  if (format.name != "float32")
    quantize_values({.format = &format}, values.data(), std::ssize(values), 1, values.data());
  Matrix result = neurons;
  std::copy(values.begin(), values.end(), result.data.begin());
  return result;
}

Matrix left_over(const policies::RotationRule& rule, const Matrix& a) {
  using policies::Rotator;
  Matrix left(a.rows, a.rows);
  const Matrix square = multiplied(a, a);
  if (rule.rotator == Rotator::descent) {
    const bool odd = rule.iterations % 2 != 0;
    const std::int64_t half = (rule.iterations + (odd ? 3 : 2)) / 2;
    Matrix power = policies::identity(a.rows);
    for (std::int64_t i = 0; i < half; ++i) {
      power = multiplied(power, square);
      for (double& x : power.data) x /= 4;
    }
    add(left, odd ? 4 : -4, power);
  } else if (rule.rotator == Rotator::loewdin) {
    add(left, -1, square);
    for (std::int64_t i = 0; i < rule.iterations; ++i) {
      const Matrix squared = multiplied(left, left);
      Matrix next = multiplied(squared, left);
      for (double& x : next.data) x /= 4;
      add(next, -0.75, squared);
      left = std::move(next);
    }
  }
  return left;
}

double series_change(const EnergySlopes& slopes, const Matrix& neurons, const Matrix& left) {
  const Matrix moved = multiplied(neurons, left);
  double sum = 0;
  for (std::size_t i = 0; i < moved.data.size(); ++i)
    sum += slopes.first.data[i] * moved.data[i] / 2;
  return sum;
}

}  // namespace numemu::experiments::orthogonal
