// Cholesky in float64 against Eigen's, and its residual.
#include "policies/calibrate/cholesky.hpp"

#include <omp.h>

#include <Eigen/Dense>
#include <cmath>

#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::policies;

namespace {

/// B B^T + I for random B.
Eigen::MatrixXd positive_definite(int n) {
  RandomSource random;
  Eigen::MatrixXd b(n, n);
  for (int i = 0; i < n * n; ++i)
    b(i / n, i % n) = std::ldexp(random.bits(static_cast<std::uint64_t>(i), 32), -31) - 1;
  return b * b.transpose() + Eigen::MatrixXd::Identity(n, n);
}

std::vector<double> rows_of(const Eigen::MatrixXd& a) {
  std::vector<double> out;
  for (int i = 0; i < a.rows(); ++i)
    for (int j = 0; j < a.cols(); ++j)
      out.push_back(j <= i ? a(i, j) : std::nan(""));  // the upper triangle is not read
  return out;
}

}  // namespace

TEST_CASE("cholesky: solves as Eigen does", "[fast]") {
  for (const int n : {1, 2, 7, 100}) {
    const Eigen::MatrixXd a = positive_definite(n);
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, -1, 2);
    const Eigen::VectorXd expected = a.llt().solve(b);
    std::vector<double> x(b.data(), b.data() + n);
    Cholesky(rows_of(a), n).solve(x.data());
    // Both are backward stable: forward error of a few n eps times the condition number, here below
    // 1e5.
    constexpr double kForward = 1e-9;
    for (int i = 0; i < n; ++i) CHECK(x[i] == Approx(expected(i)).epsilon(kForward).margin(1e-10));
  }
}

TEST_CASE("cholesky: the same bits for any number of threads", "[fast]") {
  const std::vector<double> a = rows_of(positive_definite(300));
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
