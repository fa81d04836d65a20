// Layer-wise least squares: the weights under which a linear map of given inputs comes nearest to
// given outputs.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::policies {

// Symmetric positive definite systems in float64: the same bits on every CPU and thread count.

/// The lower factor L of A = L L^T, n x n row-major; only the lower triangle of A is read. Column
/// after column, every element updated in the order of the columns. Throws Error where a pivot is
/// not positive: A is not positive definite.
class Cholesky {
 public:
  Cholesky(std::vector<double> a, std::int64_t n);
  /// x with A x = b, in place.
  void solve(double* b) const;
  /// L, row-major; what lies above its diagonal is not defined.
  const std::vector<double>& lower() const { return l_; }

 private:
  std::vector<double> l_;
  std::int64_t n_;
};

/// Constraints besides the fit.
struct LeastSquaresOptions {
  /// Weight of |w - prior|^2, in units of the mean square of an input summed over the rows.
  double ridge = 1e-6;
  const float* prior = nullptr;        ///< [out, in]; null: zeros
  const std::uint8_t* mask = nullptr;  ///< [out, in], 0 where a weight must be 0; null: none
};

/// Collects X^T X and Y^T X of y = x W^T, x [rows, in], y [rows, out], in float64, one row after
/// another: the same bits however the rows are cut into calls, and for any number of threads.
/// Memory 8 (in^2 + in out) bytes.
class LeastSquares {
 public:
  LeastSquares(std::int64_t in, std::int64_t out);

  /// Row-major, both without padding. An input or output that is not a finite number is an Error.
  void add(const float* x, const float* y, std::int64_t rows);
  /// The rows that a product reads as its left operand: of a linear layer, or of a convolution
  /// through its gather; `matrix` is the number in the stack (a group of the convolution), and y is
  /// [rows, out].
  void add(const net::Product&, std::int64_t matrix, const float* y);

  std::int64_t rows() const { return rows_; }
  /// X^T X, [in, in] row-major, of which the lower triangle is filled.
  const std::vector<double>& inputs_squared() const { return xx_; }
  /// The weights [out, in] that minimise sum |x w - y|^2 + the ridge, each rounded once to float32;
  /// by normal equations and Cholesky, per output with the mask's entries left out. Throws Error
  /// where the ridge is too small for inputs that depend on each other.
  std::vector<float> solve(const LeastSquaresOptions& = {}) const;
  /// sum |x w - y|^2 for weights [out, in], from what was collected.
  double squared_error(const float* weights) const;

 private:
  void add_rows(const float* x, const float* y, std::int64_t rows);

  std::int64_t in_, out_, rows_ = 0;
  std::vector<double> xx_;  ///< [in, in], lower triangle
  std::vector<double> yx_;  ///< [out, in]
  std::vector<double> yy_;  ///< [out]
};

/// The inputs of a product, and its outputs where they are asked for, one for each matrix of its
/// right operand; the first product of a list makes them.
void collect(const net::Product&, bool outputs, std::vector<LeastSquares>&);

/// Rows [first, first + count) of one matrix of an operand, count x depth numbers, in float32.
std::vector<float> operand_rows(const net::ProductSide&, std::int64_t matrix, std::int64_t first,
                                std::int64_t count);

}  // namespace numemu::policies
