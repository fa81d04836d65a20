#include "policies/update/base/matrix.hpp"

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

}  // namespace numemu::policies
