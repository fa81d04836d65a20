// Cholesky in float64 against LAPACK's LU.
#include "policies/calibrate/cholesky.hpp"

#include <omp.h>

#include <cmath>
#include <numeric>

#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/linear_algebra.hpp"

namespace cholesky_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

/// B B^T + I for random B, by rows.
std::vector<double> positive_definite(int n) {
  RandomSource random;
  std::vector<double> b, out;
  for (int i = 0; i < n * n; ++i)
    b.push_back(std::ldexp(random.bits(static_cast<std::uint64_t>(i), 32), -31) - 1);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      out.push_back(std::inner_product(&b[i * n], &b[i * n] + n, &b[j * n], i == j ? 1.0 : 0.0));
  return out;
}

std::vector<double> lower_triangle(std::vector<double> a, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) a[i * n + j] = std::nan("");  // is not read
  return a;
}

}  // namespace

TEST_CASE("cholesky: solves as LAPACK does", "[fast]") {
  for (const int n : {1, 2, 7, 100}) {
    const std::vector<double> a = positive_definite(n);
    std::vector<double> x;
    for (int i = 0; i < n; ++i) x.push_back(n == 1 ? 2 : -1 + 3.0 * i / (n - 1));
    const std::vector<double> expected = oracle::solve(a, x, n);
    Cholesky(lower_triangle(a, n), n).solve(x.data());
    // Both are backward stable: forward error of a few n eps times the condition number, here below
    // 1e5.
    constexpr double kForward = 1e-9;
    for (int i = 0; i < n; ++i) CHECK(x[i] == Approx(expected[i]).epsilon(kForward).margin(1e-10));
  }
}

TEST_CASE("cholesky: the same bits for any number of threads", "[fast]") {
  const std::vector<double> a = lower_triangle(positive_definite(300), 300);
  std::vector<double> one(300, 1.0), three(one);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  Cholesky(a, 300).solve(one.data());
  omp_set_num_threads(3);
  Cholesky(a, 300).solve(three.data());
  omp_set_num_threads(before);
  CHECK(one == three);
}

TEST_CASE("cholesky: refuses what is not positive definite", "[fast]") {
  CHECK_THROWS_AS(Cholesky({1, 0, 2, 1}, 2), Error);  // 1 - 2^2 < 0
  CHECK_THROWS_AS(Cholesky({0}, 1), Error);
  CHECK_THROWS_AS(Cholesky({std::nan("")}, 1), Error);
}

}  // namespace cholesky_test
