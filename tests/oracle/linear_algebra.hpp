// Dense systems of equations and least squares by LAPACK, which shares no code with ours.
#pragma once
#include <vector>

namespace numemu::oracle {

/// The X of A X = B, by LU with partial pivoting (dgesv); A has `n` rows and columns. Matrices are
/// given by rows. Throws std::runtime_error where A is singular.
std::vector<double> solve(const std::vector<double>& a, const std::vector<double>& b, int n);

/// The X that minimises |A X - B|, by QR (dgels); A and B have `rows` rows, A has full rank and no
/// more columns than rows.
std::vector<double> least_squares(const std::vector<double>& a, const std::vector<double>& b,
                                  int rows);

}  // namespace numemu::oracle
