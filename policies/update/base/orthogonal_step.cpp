#include "policies/update/base/orthogonal_step.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::policies {

Matrix identity(std::int64_t n) {
  Matrix one(n, n);
  for (std::int64_t i = 0; i < n; ++i) one.at(i, i) = 1;
  return one;
}

Matrix transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  return t;
}

Matrix multiplied(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double* const out = product.row(i);
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const double factor = a.at(i, k);
      const double* const in = b.row(k);
#pragma omp simd
      for (std::int64_t j = 0; j < b.columns; ++j) out[j] += factor * in[j];
    }
  }
  return product;
}

void add(Matrix& a, double factor, const Matrix& b) {
  for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] += factor * b.data[i];
}

double norm_of(const Matrix& a) {
  double sum = 0;
  for (const double x : a.data) sum += x * x;
  return std::sqrt(sum);
}

Matrix solved(Matrix a, Matrix b) {
  const std::int64_t n = a.rows;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::fabs(a.at(i, k)) > std::fabs(a.at(pivot, k))) pivot = i;
    if (pivot != k) {
      std::swap_ranges(a.row(k), a.row(k) + n, a.row(pivot));
      std::swap_ranges(b.row(k), b.row(k) + b.columns, b.row(pivot));
    }
    const double* const top = a.row(k);
    const double* const right = b.row(k);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const double factor = a.at(i, k) / top[k];
      double* const row = a.row(i);
      double* const other = b.row(i);
#pragma omp simd
      for (std::int64_t j = k + 1; j < n; ++j) row[j] -= factor * top[j];
#pragma omp simd
      for (std::int64_t j = 0; j < b.columns; ++j) other[j] -= factor * right[j];
    }
  }
  for (std::int64_t k = n; k-- > 0;) {
    double* const row = b.row(k);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const double factor = a.at(k, i);
      const double* const below = b.row(i);
#pragma omp simd
      for (std::int64_t j = 0; j < b.columns; ++j) row[j] -= factor * below[j];
    }
    for (std::int64_t j = 0; j < b.columns; ++j) row[j] /= a.at(k, k);
  }
  return b;
}

namespace {

/// I + factor a.
Matrix one_plus(double factor, const Matrix& a) {
  Matrix sum = identity(a.rows);
  add(sum, factor, a);
  return sum;
}

double dot(const double* x, const double* y, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/// Row j is column j of I - L.
Matrix columns_to_orthogonalise(const Matrix& a) {
  Matrix columns = identity(a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < i; ++j) columns.at(j, i) = -a.at(i, j);
  return columns;
}

/// Modified Gram-Schmidt of the rows.
Matrix gram_schmidt(Matrix q) {
  const std::int64_t n = q.rows;
  for (std::int64_t j = 0; j < n; ++j) {
    double* const row = q.row(j);
    const double length = std::sqrt(dot(row, row, n));
    for (std::int64_t i = 0; i < n; ++i) row[i] /= length;
    for (std::int64_t k = j + 1; k < n; ++k) {
      double* const later = q.row(k);
      const double along = dot(row, later, n);
      for (std::int64_t i = 0; i < n; ++i) later[i] -= along * row[i];
    }
  }
  return q;
}

/// The same rows by reflections. The sign of each is that which Gram-Schmidt gives.
Matrix householder(Matrix a) {
  const std::int64_t n = a.rows;
  std::vector<double> signs;
  // Row j of a keeps its reflection from place j on, of length sqrt(2).
  for (std::int64_t j = 0; j < n; ++j) {
    double* const v = a.row(j) + j;
    const double length = std::sqrt(dot(v, v, n - j));
    signs.push_back(v[0] > 0 ? -1 : 1);  // of the diagonal: away from cancellation
    v[0] -= signs.back() * length;
    const double scale = std::sqrt(2 / dot(v, v, n - j));
    for (std::int64_t i = 0; i < n - j; ++i) v[i] *= scale;
    for (std::int64_t k = j + 1; k < n; ++k) {
      double* const later = a.row(k) + j;
      const double along = dot(v, later, n - j);
      for (std::int64_t i = 0; i < n - j; ++i) later[i] -= along * v[i];
    }
  }
  Matrix q = identity(n);
  for (std::int64_t row = 0; row < n; ++row) {
    double* const x = q.row(row);
    x[row] = signs[static_cast<std::size_t>(row)];
    for (std::int64_t j = n; j-- > 0;) {
      const double* const v = a.row(j) + j;
      const double along = dot(v, x + j, n - j);
      for (std::int64_t i = 0; i < n - j; ++i) x[j + i] -= along * v[i];
    }
  }
  return q;
}

Matrix loewdin(Matrix x, std::int64_t iterations) {
  for (std::int64_t i = 0; i < iterations; ++i) {
    Matrix next = multiplied(x, multiplied(transposed(x), x));
    for (double& element : next.data) element *= -0.5;
    add(next, 1.5, x);
    x = std::move(next);
  }
  return x;
}

/// The exact step of A = U V^T, U = [D, W], V = [W, -D]: W - U (I + V^T U / 2)^-1 V^T W.
Matrix cayley_in_low_rank(const Matrix& w, const Matrix& d) {
  const std::int64_t n = w.rows;
  const Matrix to_w = transposed(w), to_d = transposed(d);
  const Matrix ww = multiplied(w, to_w), wd = multiplied(w, to_d), dd = multiplied(d, to_d);
  Matrix core = identity(2 * n), right(2 * n, n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      core.at(i, j) += wd.at(i, j) / 2;
      core.at(i, n + j) += ww.at(i, j) / 2;
      core.at(n + i, j) -= dd.at(i, j) / 2;
      core.at(n + i, n + j) -= wd.at(j, i) / 2;
      right.at(i, j) = ww.at(i, j);
      right.at(n + i, j) = -wd.at(j, i);
    }
  }
  const Matrix x = solved(std::move(core), std::move(right));
  Matrix of_d(n, n), of_w(n, n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      of_d.at(i, j) = x.at(j, i);
      of_w.at(i, j) = x.at(n + j, i);
    }
  }
  Matrix turned = w;
  add(turned, -1, multiplied(of_d, d));
  add(turned, -1, multiplied(of_w, w));
  return turned;
}

bool iterates(Rotator rotator) {
  return rotator == Rotator::descent || rotator == Rotator::loewdin;
}

}  // namespace

Matrix skew_of(const Matrix& neurons, const Matrix& step) {
  const Matrix product = multiplied(transposed(step), neurons);
  Matrix a = product;
  add(a, -1, transposed(product));
  return a;
}

Matrix rotated_by(const RotationRule& rule, const Matrix& neurons, Matrix a) {
  if (iterates(rule.rotator)) {
    const double norm = norm_of(a);
    if (norm > 1)
      for (double& element : a.data) element /= norm;
  }
  switch (rule.rotator) {
    case Rotator::cayley:  // Q W, from its columns W
      return transposed(
          solved(one_plus(0.5, a), multiplied(one_plus(-0.5, a), transposed(neurons))));
    case Rotator::descent: {
      Matrix turned = neurons;  // rows: w A^T = -w A
      add(turned, 1, multiplied(neurons, a));
      for (std::int64_t i = 0; i < rule.iterations; ++i) {
        Matrix sum = neurons;
        add(sum, 1, turned);
        turned = neurons;
        add(turned, 0.5, multiplied(sum, a));
      }
      return turned;
    }
    case Rotator::gram_schmidt:
      return multiplied(neurons, gram_schmidt(columns_to_orthogonalise(a)));
    case Rotator::householder:
      return multiplied(neurons, householder(columns_to_orthogonalise(a)));
    case Rotator::loewdin:
      break;
  }
  // Rows are turned by Q^T, which the iteration makes of (I - A)^T = I + A.
  return multiplied(neurons, loewdin(one_plus(1, a), rule.iterations));
}

Matrix rotated(const RotationRule& rule, const Matrix& neurons, const Matrix& step) {
  if (rule.rotator == Rotator::cayley && 2 * neurons.rows < neurons.columns)
    return cayley_in_low_rank(neurons, step);
  return rotated_by(rule, neurons, skew_of(neurons, step));
}

Matrix cayley_of(const Matrix& s) {
  return transposed(solved(one_plus(1, s), transposed(one_plus(1, s))));
}

Matrix cayley_step(const Matrix& s, const Matrix& step) {
  const Matrix half = transposed(solved(one_plus(1, s), step));
  const Matrix c = solved(one_plus(-1, s), half);  // transposed
  Matrix b = transposed(c);
  add(b, -1, c);
  for (double& element : b.data) element /= 2;
  return b;
}

}  // namespace numemu::policies
