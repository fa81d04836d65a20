// Small dense matrices in float64: sums in one order, so that results are the same bits everywhere.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace numemu::policies {

/// Row-major; zeros at first.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> data;

  Matrix(std::int64_t r, std::int64_t c)
      : rows(r), columns(c), data(static_cast<std::size_t>(r * c)) {}
  double* row(std::int64_t i) { return data.data() + i * columns; }
  const double* row(std::int64_t i) const { return data.data() + i * columns; }
  double& at(std::int64_t i, std::int64_t j) { return row(i)[j]; }
  double at(std::int64_t i, std::int64_t j) const { return row(i)[j]; }
};

Matrix identity(std::int64_t n);
Matrix transposed(const Matrix&);
/// a b; the shapes of both must fit, here and below.
Matrix multiplied(const Matrix& a, const Matrix& b);
/// a += factor b.
void add(Matrix& a, double factor, const Matrix& b);
/// The root of the sum of squares.
double norm_of(const Matrix&);
/// x with a x = b, by elimination with the largest pivot of each column. A singular a gives what is
/// not finite.
Matrix solved(Matrix a, Matrix b);

}  // namespace numemu::policies
