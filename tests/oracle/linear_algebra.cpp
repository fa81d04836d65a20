// LAPACK has no header in C: its Fortran symbols are declared here. gfortran passes the length of a
// string behind all other arguments.
#include "tests/oracle/linear_algebra.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

extern "C" {
void dgesv_(const int* n, const int* columns, double* a, const int* lda, int* pivots, double* b,
            const int* ldb, int* info);
void dgels_(const char* transposed, const int* rows, const int* n, const int* columns, double* a,
            const int* lda, double* b, const int* ldb, double* work, const int* work_size,
            int* info, std::size_t transposed_length);
}

namespace numemu::oracle {
namespace {

/// LAPACK's matrices are given by columns.
std::vector<double> transposed(const std::vector<double>& a, int rows) {
  const std::size_t m = static_cast<std::size_t>(rows), n = a.size() / m;
  std::vector<double> out(a.size());
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) out[j * m + i] = a[i * n + j];
  return out;
}

void check(const char* routine, int info) {
  if (info != 0)
    throw std::runtime_error(std::string(routine) + " returns " + std::to_string(info));
}

}  // namespace

std::vector<double> solve(const std::vector<double>& a, const std::vector<double>& b, int n) {
  std::vector<double> factors = transposed(a, n), x = transposed(b, n);
  const int columns = static_cast<int>(b.size()) / n;
  std::vector<int> pivots(static_cast<std::size_t>(n));
  int info = 0;
  dgesv_(&n, &columns, factors.data(), &n, pivots.data(), x.data(), &n, &info);
  check("dgesv", info);
  return transposed(x, columns);
}

std::vector<double> least_squares(const std::vector<double>& a, const std::vector<double>& b,
                                  int rows) {
  std::vector<double> factors = transposed(a, rows), x = transposed(b, rows);
  const int n = static_cast<int>(a.size()) / rows, columns = static_cast<int>(b.size()) / rows;
  const int work_size = n + std::max(n, columns);
  std::vector<double> work(static_cast<std::size_t>(work_size));
  int info = 0;
  dgels_("N", &rows, &n, &columns, factors.data(), &rows, x.data(), &rows, work.data(), &work_size,
         &info, 1);
  check("dgels", info);
  std::vector<double> out = transposed(x, columns);  // the first n rows are the solution
  out.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(columns));
  return out;
}

}  // namespace numemu::oracle
