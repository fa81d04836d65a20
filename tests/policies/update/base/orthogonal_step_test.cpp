// Rotations against each other, their definitions and the orders of what they lose.
#include "policies/update/base/orthogonal_step.hpp"

#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "tests/catch.hpp"

namespace numemu::orthogonal_step_test {

using namespace numemu::policies;

namespace {

Matrix drawn(std::int64_t rows, std::int64_t columns, std::uint32_t tensor, double scale = 1) {
  Matrix m(rows, columns);
  const RandomSource source{7, Stream::vectors, tensor};
  for (std::size_t i = 0; i < m.data.size(); ++i) m.data[i] = scale * normal::draw(source, i);
  return m;
}

double largest(const Matrix& m) {
  double most = 0;
  for (const double x : m.data) most = std::max(most, std::fabs(x));
  return most;
}

double distance(Matrix a, const Matrix& b) {
  add(a, -1, b);
  return largest(a);
}

Matrix gram(const Matrix& neurons) { return multiplied(neurons, transposed(neurons)); }

}  // namespace

TEST_CASE("orthogonal_step: the step of two neurons by hand", "[fast]") {
  Matrix w(2, 2), step(2, 2);  // neurons are columns: W = diag(1, 2), G = e1 e2^T, rate 0.1
  w.data = {1, 0, 0, 2};
  step.data = {0, 0, 0.1, 0};
  const Matrix turned = transposed(rotated({}, w, step));
  const double expected[] = {.980198, -.396040, .198020, 1.960396};
  for (std::size_t i = 0; i < 4; ++i) CHECK(turned.data[i] == Approx(expected[i]).margin(5e-7));
}

TEST_CASE("orthogonal_step: neurons keep their angles and lengths at large rates, too", "[fast]") {
  constexpr double kRounding = 1e-12;  // of sums of 12 float64 products, at a rate of 3
  for (const std::int64_t n : {3, 12}) {
    INFO(n);
    const Matrix w = drawn(n, 12, 0), step = drawn(n, 12, 1, 3);
    const auto off = [&](const RotationRule& rule, const Matrix& by) {
      return distance(gram(rotated(rule, w, by)), gram(w));
    };
    CHECK(off({Rotator::cayley}, step) < kRounding);
    CHECK(off({Rotator::householder}, step) < kRounding);
    CHECK(off({Rotator::loewdin, 12}, step) < kRounding);
    CHECK(off({Rotator::descent, 40}, step) < kRounding);
    // In low rank where neurons are few, and the same by A itself.
    CHECK(distance(rotated({}, w, step), rotated_by({}, w, skew_of(w, step))) < kRounding);
    // Gram-Schmidt loses by the condition of I - L, which grows with the rate.
    const Matrix small = drawn(n, 12, 1, 0.02);
    CHECK(off({Rotator::gram_schmidt}, small) < kRounding);
    CHECK(off({Rotator::gram_schmidt}, step) > 100 * off({Rotator::householder}, step));
    CHECK(distance(rotated({Rotator::gram_schmidt}, w, small),
                   rotated({Rotator::householder}, w, small)) < kRounding);
  }
}

TEST_CASE("orthogonal_step: all move as -A W, and leave what their series leave", "[fast]") {
  const Matrix w = drawn(6, 6, 2);
  const Matrix whole = skew_of(w, drawn(6, 6, 3));
  const auto scaled = [&](double size) {
    Matrix a = whole;
    for (double& x : a.data) x *= size / norm_of(whole);
    return a;
  };
  for (const Rotator rotator : {Rotator::cayley, Rotator::descent, Rotator::gram_schmidt,
                                Rotator::householder, Rotator::loewdin}) {
    Matrix expected = w;  // rows: w A^T
    add(expected, 1, multiplied(w, scaled(1e-4)));
    CHECK(distance(rotated_by({rotator}, w, scaled(1e-4)), expected) < 1e-7);
  }
  // Half the angle leaves 2^order less.
  struct Order {
    RotationRule rule;
    int order;
  };
  for (const Order& one : {Order{{Rotator::descent, 1}, 4}, Order{{Rotator::descent, 2}, 4},
                           Order{{Rotator::descent, 3}, 6}, Order{{Rotator::loewdin, 1}, 4},
                           Order{{Rotator::loewdin, 2}, 8}}) {
    const auto left = [&](double size) {
      return distance(gram(rotated_by(one.rule, w, scaled(size))), gram(w));
    };
    CHECK(std::log2(left(0.4) / left(0.2)) == Approx(one.order).margin(0.15));
  }
}

TEST_CASE("orthogonal_step: the loss falls by half of |A|^2 over the rate", "[fast]") {
  constexpr double kRate = 1e-5;
  const Matrix w = drawn(5, 8, 4), gradient = drawn(5, 8, 5);
  Matrix step = gradient;
  for (double& x : step.data) x *= kRate;
  Matrix moved = rotated({}, w, step);
  add(moved, -1, w);
  double change = 0;  // of the loss <G, W>
  for (std::size_t i = 0; i < moved.data.size(); ++i) change += moved.data[i] * gradient.data[i];
  const double norm = norm_of(skew_of(w, gradient));
  CHECK(change == Approx(-kRate * norm * norm / 2).epsilon(1e-3));
}

TEST_CASE("orthogonal_step: the trained S has the derivative of its rotation", "[fast]") {
  const Matrix s = skew_of(drawn(4, 6, 6), drawn(4, 6, 7, 0.3)), m = drawn(6, 6, 8);
  CHECK(distance(gram(cayley_of(s)), identity(6)) < 1e-12);
  const Matrix step = cayley_step(s, m);
  constexpr double kSmall = 1e-6;
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      Matrix up = s, down = s;
      up.at(i, j) += kSmall, up.at(j, i) -= kSmall;
      down.at(i, j) -= kSmall, down.at(j, i) += kSmall;
      Matrix change = cayley_of(up);
      add(change, -1, cayley_of(down));
      double derivative = 0;
      for (std::size_t k = 0; k < m.data.size(); ++k)
        derivative += m.data[k] * change.data[k] / (2 * kSmall);
      CHECK(step.at(i, j) == Approx(derivative / 4).epsilon(1e-6).margin(1e-9));
      CHECK(step.at(j, i) == -step.at(i, j));
    }
  }
}

}  // namespace numemu::orthogonal_step_test
