// Least squares against LAPACK's QR, masks, priors, and a convolution's rows through its
// gather.
#include "policies/calibrate/least_squares.hpp"

#include <omp.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "emu/net/observing.hpp"
#include "emu/net/ops/conv.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/linear_algebra.hpp"

namespace least_squares_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

// Normal equations square the condition number (below 100 here); weights are rounded to float32.
constexpr double kWeightError = 1e-6;

std::vector<float> uniform(std::int64_t n, std::uint64_t seed) {
  RandomSource random;
  random.seed = seed;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<float>(
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 32)), -31) - 1));
  return x;
}

std::vector<double> doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// The column `at` of a matrix of `columns` columns.
std::vector<double> column(const std::vector<float>& x, std::int64_t columns, std::int64_t at) {
  std::vector<double> out;
  for (std::size_t i = at; i < x.size(); i += columns) out.push_back(x[i]);
  return out;
}

struct Problem {
  static constexpr std::int64_t kRows = 300, kIn = 12, kOut = 5;
  std::vector<float> x = uniform(kRows * kIn, 1), y = uniform(kRows * kOut, 2);
  LeastSquares collected() const {
    LeastSquares squares(kIn, kOut);
    squares.add(x.data(), y.data(), kRows);
    return squares;
  }
};

}  // namespace

TEST_CASE("least squares: as QR of the whole system", "[fast]") {
  const Problem p;
  const std::vector<double> expected = oracle::least_squares(doubles(p.x), doubles(p.y), p.kRows);
  const LeastSquares squares = p.collected();
  const std::vector<float> w = squares.solve({.ridge = 0});
  for (int o = 0; o < p.kOut; ++o)
    for (int i = 0; i < p.kIn; ++i)
      CHECK(w[o * p.kIn + i] == Approx(expected[i * p.kOut + o]).margin(kWeightError));
  double residual = 0;
  for (std::int64_t r = 0; r < p.kRows; ++r) {
    for (std::int64_t o = 0; o < p.kOut; ++o) {
      double error = -p.y[r * p.kOut + o];
      for (std::int64_t i = 0; i < p.kIn; ++i)
        error += double{p.x[r * p.kIn + i]} * w[o * p.kIn + i];
      residual += error * error;
    }
  }
  CHECK(squares.squared_error(w.data()) == Approx(residual));
  CHECK(squares.rows() == p.kRows);
}

TEST_CASE("least squares: a mask leaves entries out", "[fast]") {
  const Problem p;
  std::vector<std::uint8_t> mask(p.kOut * p.kIn);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 0 && i / p.kIn != 4;
  const std::vector<float> w = p.collected().solve({.ridge = 0, .mask = mask.data()});
  for (int o = 0; o < p.kOut; ++o) {
    std::vector<int> kept;
    for (int i = 0; i < p.kIn; ++i) {
      if (mask[o * p.kIn + i]) kept.push_back(i);
      if (!mask[o * p.kIn + i]) CHECK(w[o * p.kIn + i] == 0);
    }
    if (kept.empty()) continue;
    std::vector<double> x;
    for (std::int64_t r = 0; r < p.kRows; ++r)
      for (const int i : kept) x.push_back(p.x[r * p.kIn + i]);
    const std::vector<double> expected = oracle::least_squares(x, column(p.y, p.kOut, o), p.kRows);
    for (std::size_t j = 0; j < kept.size(); ++j)
      CHECK(w[o * p.kIn + kept[j]] == Approx(expected[j]).margin(kWeightError));
  }
}

TEST_CASE("least squares: the ridge pulls to the prior", "[fast]") {
  const Problem p;
  const std::vector<float> prior = uniform(p.kOut * p.kIn, 3);
  const LeastSquares squares = p.collected();
  const std::vector<float> near = squares.solve({.ridge = 1e9, .prior = prior.data()});
  for (std::size_t i = 0; i < prior.size(); ++i) CHECK(near[i] == Approx(prior[i]).margin(1e-6));
  // The augmented system [X; sqrt(ridge) I] w = [y; sqrt(ridge) prior].
  std::vector<double> x = doubles(p.x), y = doubles(p.y);
  const double ridge = 0.1 * std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / p.kIn;
  for (std::int64_t i = 0; i < p.kIn; ++i) {
    for (std::int64_t j = 0; j < p.kIn; ++j) x.push_back(i == j ? std::sqrt(ridge) : 0);
    for (std::int64_t o = 0; o < p.kOut; ++o) y.push_back(std::sqrt(ridge) * prior[o * p.kIn + i]);
  }
  const std::vector<double> expected = oracle::least_squares(x, y, p.kRows + p.kIn);
  const std::vector<float> w = squares.solve({.ridge = 0.1, .prior = prior.data()});
  for (int o = 0; o < p.kOut; ++o)
    for (int i = 0; i < p.kIn; ++i)
      CHECK(w[o * p.kIn + i] == Approx(expected[i * p.kOut + o]).margin(kWeightError));
}

TEST_CASE("least squares: the same bits for any cut of the rows and any threads", "[fast]") {
  constexpr std::int64_t kRows = 300, kIn = 80, kOut = 3;  // enough for threads
  const std::vector<float> x = uniform(kRows * kIn, 1), y = uniform(kRows * kOut, 2);
  const auto solved = [&](std::int64_t cut, int threads) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    LeastSquares squares(kIn, kOut);
    for (std::int64_t r = 0; r < kRows; r += cut)
      squares.add(x.data() + r * kIn, y.data() + r * kOut, std::min(cut, kRows - r));
    omp_set_num_threads(before);
    return squares.solve();
  };
  const std::vector<float> whole = solved(kRows, 1);
  CHECK(solved(kRows, 3) == whole);
  CHECK(solved(7, 1) == whole);
}

TEST_CASE("least squares: what cannot be solved is an error", "[fast]") {
  LeastSquares twice(2, 1);
  const float x[] = {1, 1, 2, 2}, y[] = {1, 2};
  twice.add(x, y, 2);
  CHECK_THROWS_AS(twice.solve({.ridge = 0}), Error);
  CHECK_NOTHROW(twice.solve({.ridge = 1e-6}));
  const float bad[] = {1, std::numeric_limits<float>::infinity()};
  CHECK_THROWS_AS(twice.add(bad, y, 1), Error);
  CHECK_THROWS_AS(twice.add(x, bad + 1, 1), Error);
  LeastSquares empty(3, 1);  // no rows: the prior
  const float prior[] = {1, 2, 3};
  CHECK(empty.solve({.prior = prior}) == std::vector<float>{1, 2, 3});
}

TEST_CASE("least squares: finds the weights of a convolution from its rows", "[fast]") {
  net::Conv2dOptions options;
  options.in_channels = 3;
  options.out_channels = 4;
  options.kernel_height = options.kernel_width = 3;
  options.pad = 1;
  options.bias = false;
  net::Conv2d conv(options);
  const std::vector<float> weights = uniform(4 * 27, 5);
  conv.parameters()[0].value.data = {weights.begin(), weights.end()};
  net::Tensor input({4, 6, 5, 3});
  const std::vector<float> pixels = uniform(input.size(), 6);
  input.data = {pixels.begin(), pixels.end()};
  LeastSquares squares(27, 4);
  net::Observing numerics(
      {.after = [&](const net::Step&, const net::Product& p) { squares.add(p, 0, p.d); }});
  const net::Tensor* inputs[] = {&input};
  const net::Shape shapes[] = {input.shape};
  net::Tensor output(conv.output_shape(shapes));
  conv.forward({"conv", numerics}, inputs, output);
  CHECK(squares.rows() == 4 * 6 * 5);
  const std::vector<float> found = squares.solve({.ridge = 0});
  // Outputs are float32 sums of 27 products: relative error 27 * 2^-24.
  for (std::size_t i = 0; i < weights.size(); ++i)
    CHECK(found[i] == Approx(weights[i]).margin(1e-5));
}

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

}  // namespace least_squares_test
