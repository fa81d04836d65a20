// AdaComp on noise: the first step by enumeration, the mean field against figures of another
// program.
#include "experiments/workers/adacomp_law.hpp"

#include <cmath>

#include "formats/analysis/normal_law.hpp"
#include "tests/catch.hpp"

namespace numemu::adacomp_noise_test {

using namespace numemu::experiments::adacomp;

TEST_CASE("adacomp: rates of the published codes", "[fast]") {
  CHECK(rate(50, 5) == 40);
  CHECK(rate(500, 5) == 200);
  CHECK(code_bits(64) == 8);
  CHECK(code_bits(65) == 16);
}

TEST_CASE("adacomp: the first step sends what is at least half the largest", "[fast]") {
  // Two elements: both are sent where the ratio of two normal numbers is within [1/2, 2], a Cauchy
  // law: 1 + 2 (atan(2) - atan(1/2)) / (pi / 2) / 2.
  CHECK(first_sent(2) ==
        Approx(1 + 4 / M_PI * (std::atan(2.0) - std::atan(0.5)) / 2).epsilon(1e-6));
  CHECK(first_sent(50) == Approx(11.046624).epsilon(1e-6));
  CHECK(first_sent(500) == Approx(55.116552).epsilon(1e-6));
  // 4,000 bins of 20 drawn.
  const RandomSource random{.seed = 3, .stream = Stream::vectors};
  double sum = 0, squares = 0;
  for (std::uint64_t b = 0; b < 4000; ++b) {
    double largest = 0, sent = 0;
    for (std::uint64_t i = 0; i < 20; ++i)
      largest = std::max(largest, std::fabs(normal::draw(random, 20 * b + i)));
    for (std::uint64_t i = 0; i < 20; ++i)
      sent += 2 * std::fabs(normal::draw(random, 20 * b + i)) >= largest;
    sum += sent;
    squares += sent * sent;
  }
  const double mean = sum / 4000, error = std::sqrt((squares / 4000 - mean * mean) / 3999);
  CHECK(std::fabs(mean - first_sent(20)) < 4 * error);
}

TEST_CASE("adacomp: the mean field's steady state", "[fast]") {
  // Of a program of its own with steps a quarter as long: 4.8599, 4.2635, 1.4833 and 5.5027,
  // 10.6459, 3.9761. A step of 1/8 changes them by less than 0.3 %.
  constexpr double kStep = 3e-3;
  const SteadyState fifty = steady_state(50), five_hundred = steady_state(500);
  CHECK(fifty.sent == Approx(4.8599).epsilon(kStep));
  CHECK(fifty.scale == Approx(4.2635).epsilon(kStep));
  CHECK(fifty.residual == Approx(1.4833).epsilon(kStep));
  CHECK(five_hundred.sent == Approx(5.5027).epsilon(kStep));
  CHECK(five_hundred.scale == Approx(10.6459).epsilon(kStep));
  CHECK(five_hundred.residual == Approx(3.9761).epsilon(kStep));
}

}  // namespace numemu::adacomp_noise_test
