// Small dense systems of equations by Gaussian elimination with more digits than float64 has.
#pragma once
#include <vector>

namespace numemu::oracle {

/// The X of A X = B; A has `n` rows and columns. Matrices are given by rows.
std::vector<double> solve(const std::vector<double>& a, const std::vector<double>& b, int n);

/// The X that minimises |A X - B|, by its normal equations; A and B have `rows` rows.
std::vector<double> least_squares(const std::vector<double>& a, const std::vector<double>& b,
                                  int rows);

}  // namespace numemu::oracle
