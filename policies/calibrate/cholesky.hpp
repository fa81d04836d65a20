// Symmetric positive definite systems in float64: the same bits on every CPU and thread count.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::policies {

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

}  // namespace numemu::policies
