#include "policies/calibrate/cholesky.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "formats/error.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kFewestParallelRows = 256;  // below, starting threads costs more

}  // namespace

Cholesky::Cholesky(std::vector<double> a, std::int64_t n) : l_(std::move(a)), n_(n) {
  std::vector<double> column(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k < n; ++k) {
    const double pivot = l_[k * n + k];
    if (!(pivot > 0)) {
      throw Error("expected a positive definite matrix: pivot " + std::to_string(k) + " of " +
                  std::to_string(n) + " is not positive");
    }
    const double root = std::sqrt(pivot);
    l_[k * n + k] = root;
    for (std::int64_t i = k + 1; i < n; ++i) column[i] = l_[i * n + k] /= root;
      // Each element takes the products of one column after another: no sum is shared by threads.
#pragma omp parallel for schedule(static, 8) if (n - k > kFewestParallelRows)
    for (std::int64_t i = k + 1; i < n; ++i) {
      double* row = l_.data() + i * n;
      const double factor = column[i];
      for (std::int64_t j = k + 1; j <= i; ++j) row[j] -= factor * column[j];
    }
  }
}

void Cholesky::solve(double* b) const {
  for (std::int64_t i = 0; i < n_; ++i) {
    double sum = b[i];
    for (std::int64_t j = 0; j < i; ++j) sum -= l_[i * n_ + j] * b[j];
    b[i] = sum / l_[i * n_ + i];
  }
  for (std::int64_t i = n_ - 1; i >= 0; --i) {
    b[i] /= l_[i * n_ + i];
    for (std::int64_t j = 0; j < i; ++j) b[j] -= l_[i * n_ + j] * b[i];
  }
}

}  // namespace numemu::policies
