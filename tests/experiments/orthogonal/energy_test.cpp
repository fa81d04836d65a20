// Hyperspherical energy: its derivatives by differences, its mean and what rounding does to it.
#include "experiments/orthogonal/orthogonal.hpp"

#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::energy_test {

using namespace numemu::experiments::orthogonal;
using policies::Matrix;
using policies::RotationRule;
using policies::Rotator;

namespace {

Matrix drawn(std::int64_t n, std::int64_t d, std::uint32_t tensor) {
  Matrix m(n, d);
  const RandomSource source{3, Stream::vectors, tensor};
  for (std::size_t i = 0; i < m.data.size(); ++i) m.data[i] = normal::draw(source, i);
  return m;
}

}  // namespace

TEST_CASE("energy: two opposite neurons, and neurons at right angles", "[fast]") {
  Matrix two(2, 3);
  two.data = {1, 0, 0, -5, 0, 0};
  CHECK(energy(two, 1) == Approx(2 * 0.5));
  CHECK(energy(two, 2) == Approx(2 * 0.25));
  CHECK(energy(policies::identity(4), 1) == Approx(12 / std::sqrt(2.0)));
}

TEST_CASE("energy: derivatives are those of differences", "[fast]") {
  constexpr double kSmall = 1e-4;
  for (const double power : {1.0, 2.0}) {
    const Matrix w = drawn(5, 4, 0);
    const EnergySlopes slopes = energy_slopes(w, power);
    CHECK(slopes.energy == Approx(energy(w, power)).epsilon(1e-12));
    for (std::size_t i = 0; i < w.data.size(); ++i) {
      Matrix up = w, down = w;
      up.data[i] += kSmall;
      down.data[i] -= kSmall;
      const double above = energy(up, power), below = energy(down, power);
      CHECK(slopes.first.data[i] ==
            Approx((above - below) / (2 * kSmall)).epsilon(1e-5).margin(1e-6));
      CHECK(slopes.second.data[i] == Approx((above + below - 2 * slopes.energy) / (kSmall * kSmall))
                                         .epsilon(1e-4)
                                         .margin(1e-4));
    }
  }
}

TEST_CASE("energy: the mean of random neurons", "[fast]") {
  CHECK(expected_energy(2, 3, 1) == Approx(2));  // 1/r of density r/2 up to 2
  double sum = 0;
  constexpr int kDraws = 400;
  for (int t = 0; t < kDraws; ++t) sum += energy(drawn(16, 8, static_cast<std::uint32_t>(t)), 1);
  CHECK(sum / kDraws == Approx(expected_energy(16, 8, 1)).epsilon(0.005));  // deviation 1 %
}

TEST_CASE("energy: a rotation keeps it up to the rounding of a format", "[fast]") {
  const Matrix w = drawn(16, 8, 1), turned = policies::rotated({}, w, drawn(16, 8, 2));
  CHECK(energy(turned, 1) == Approx(energy(w, 1)).epsilon(1e-13));
  for (const char* const name : {"float16", "bfloat16", "float8_e4m3fn"}) {
    const Format& format = find_format(name);
    double squares = 0, expected = 0;
    for (std::uint32_t t = 0; t < 100; ++t) {
      const Matrix one = drawn(16, 8, t);
      const double change = energy(rounded(one, format), 1) - energy(one, 1);
      squares += change * change;
      expected += rounding_change(one, format, 1).mean_square();
    }
    INFO(name);
    CHECK(squares / expected == Approx(1).margin(0.5));  // 4 errors of a chi-square law of 100
  }
  CHECK(numemu::test::message_of([&] { rounding_change(w, find_format("int8"), 1); }) ==
        "energy under rounding: expected a floating format, not int8");
}

TEST_CASE("energy: what series leave over", "[fast]") {
  const Matrix w = drawn(6, 6, 4);
  Matrix a = policies::skew_of(w, drawn(6, 6, 5));
  const double size = policies::norm_of(a);
  for (double& x : a.data) x *= 0.2 / size;
  const EnergySlopes slopes = energy_slopes(w, 1);
  for (const RotationRule& rule : {RotationRule{Rotator::descent, 1},
                                   {Rotator::descent, 2},
                                   {Rotator::descent, 3},
                                   {Rotator::descent, 4},
                                   {Rotator::loewdin, 1},
                                   {Rotator::loewdin, 2}}) {
    const Matrix left = left_over(rule, a);
    const double change = energy(policies::rotated_by(rule, w, a), 1) - slopes.energy;
    INFO(static_cast<int>(rule.rotator) << " " << rule.iterations);
    CHECK(series_change(slopes, w, left) == Approx(change).epsilon(0.05));  // |A|^2 = 0.04
  }
  CHECK(policies::norm_of(left_over({}, a)) == 0);
}

}  // namespace numemu::energy_test
