// Elimination with the largest pivot of a column, in 64-bit significands where the host has them.
#include "tests/oracle/elimination.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::oracle {
namespace {

using Real = long double;

/// A becomes the identity, B the solution.
std::vector<double> eliminate(std::vector<Real> a, std::vector<Real> b, int n) {
  const int columns = static_cast<int>(b.size()) / n;
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int r = k + 1; r < n; ++r)
      if (std::abs(a[r * n + k]) > std::abs(a[pivot * n + k])) pivot = r;
    std::swap_ranges(&a[k * n], &a[k * n] + n, &a[pivot * n]);
    std::swap_ranges(&b[k * columns], &b[k * columns] + columns, &b[pivot * columns]);
    const Real by = a[k * n + k];
    for (int r = 0; r < n; ++r) {
      if (r == k) continue;
      const Real factor = a[r * n + k] / by;
      for (int c = k; c < n; ++c) a[r * n + c] -= factor * a[k * n + c];
      for (int c = 0; c < columns; ++c) b[r * columns + c] -= factor * b[k * columns + c];
    }
  }
  std::vector<double> x;
  for (int i = 0; i < n * columns; ++i)
    x.push_back(static_cast<double>(b[i] / a[i / columns * (n + 1)]));
  return x;
}

/// A^T B; both have `rows` rows.
std::vector<Real> product(const std::vector<double>& a, const std::vector<double>& b, int rows) {
  const int m = static_cast<int>(a.size()) / rows, n = static_cast<int>(b.size()) / rows;
  std::vector<Real> out(static_cast<std::size_t>(m * n));
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) out[i * n + j] += Real{a[r * m + i]} * b[r * n + j];
  return out;
}

}  // namespace

std::vector<double> solve(const std::vector<double>& a, const std::vector<double>& b, int n) {
  return eliminate({a.begin(), a.end()}, {b.begin(), b.end()}, n);
}

std::vector<double> least_squares(const std::vector<double>& a, const std::vector<double>& b,
                                  int rows) {
  return eliminate(product(a, a, rows), product(a, b, rows), static_cast<int>(a.size()) / rows);
}

}  // namespace numemu::oracle
