// Rotations that take the place of an increment: W <- Q W with Q orthogonal and neurons as columns
// of W, so that lengths of neurons and angles between them stay (Liu et al., Orthogonal
// Over-Parameterized Training, CVPR 2021, arXiv 2004.04690). Neurons here are the rows of a matrix
// [neurons, elements], as a layer's weights have them.
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

/// How a skew-symmetric A becomes an orthogonal Q = I - A + O(A^2).
enum class Rotator : std::uint8_t {
  cayley,        ///< (I + A/2)^-1 (I - A/2), exact
  descent,       ///< its fixed-point iteration Y <- W - A (W + Y) / 2, from Y = W - A W
  gram_schmidt,  ///< of the columns of I - L, A = L - L^T with L below the diagonal
  householder,   ///< of the same matrix, by reflections
  loewdin,       ///< of I - A, by Newton-Schulz iterations X <- X (3 - X^T X) / 2
};

struct RotationRule {
  Rotator rotator = Rotator::cayley;
  std::int64_t iterations = 2;  ///< of descent and loewdin
};

/// A = D W^T - W D^T of neurons and of the step D that descent would subtract from them.
Matrix skew_of(const Matrix& neurons, const Matrix& step);
/// The neurons turned by Q of A. Descent and loewdin divide A by max(1, |A|), so that they
/// converge.
Matrix rotated_by(const RotationRule&, const Matrix& neurons, Matrix a);
/// rotated_by() of skew_of(): moves W by -A W to first order, along which the loss falls by
/// |A|^2 / 2 over the rate. The exact step is made in twice as many dimensions as there are neurons
/// where that is less than those of A.
Matrix rotated(const RotationRule&, const Matrix& neurons, const Matrix& step);

/// R = (I + S) (I - S)^-1 of a skew-symmetric S, as published.
Matrix cayley_of(const Matrix& s);
/// What is subtracted from S for a step D along dL/dR times a rate: (C - C^T) / 2 with
/// C = (I + S)^-1 D (I + S)^-1, a quarter of the derivative, so that R moves by D^T - D at S = 0 as
/// it does under every rotator.
Matrix cayley_step(const Matrix& s, const Matrix& step);

}  // namespace numemu::policies
