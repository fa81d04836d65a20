// Quantiles and tails against tables and closed forms.
#include "emu/stats/laws.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace laws_test {

using namespace numemu::stats;

TEST_CASE("the tail of Student's t inverts its quantile", "[fast]") {
  for (const double tail : {0.4, 0.025, 1e-6, 1e-12}) {
    for (const double degrees : {1.0, 4.0, 60.0}) {
      const double t = student_quantile(degrees, tail);
      CHECK(student_tail(degrees, t) == Approx(tail).epsilon(1e-9));
    }
  }
  CHECK(student_tail(4, 0) == 0.5);
  CHECK(student_tail(4, 1e9) == Approx(3e-36).epsilon(1e-6));  // 3 t^-4 far out
}

TEST_CASE("binomial probabilities", "[fast]") {
  CHECK(binomial_probability(4, 2, 0.5) == Approx(6.0 / 16).epsilon(1e-14));
  CHECK(binomial_probability(8, 3, 0.1) == Approx(56 * std::pow(0.1, 3) * std::pow(0.9, 5)));
  CHECK(binomial_probability(7, 0, 0) == 1);
  CHECK(binomial_probability(7, 7, 1) == 1);
  CHECK(binomial_probability(7, 3, 1) == 0);
}

TEST_CASE("Student's quantiles in closed form for one and two degrees", "[fast]") {
  for (const double tail : {0.4, 0.1, 0.025, 0.001}) {
    CHECK(student_quantile(1, tail) == Approx(1 / std::tan(M_PI * tail)).epsilon(1e-12));
    CHECK(student_quantile(2, tail) ==
          Approx((1 - 2 * tail) * std::sqrt(2 / (4 * tail * (1 - tail)))).epsilon(1e-12));
  }
}

TEST_CASE("Student's quantiles of many degrees are the normal law's and a series", "[fast]") {
  for (const auto& [tail, z] : {std::pair(0.025, 1.9599639845400542), {1e-4, 3.7190164854556809}}) {
    const double square = z * z;
    // Abramowitz and Stegun 26.7.5; the fourth term is below 1e-14 of the sum. Below 10000 degrees
    // the beta law's shares lose as many digits as the degrees have.
    const auto series = [&z = z, square](double n) {
      return z + z * (square + 1) / (4 * n) + z * ((5 * square + 16) * square + 3) / (96 * n * n) +
             z * (((3 * square + 19) * square + 17) * square - 15) / (384 * n * n * n);
    };
    for (const double n : {1e4, 1e6, 1e9, 1e12})
      CHECK(student_quantile(n, tail) == Approx(series(n)).epsilon(2e-14));
    CHECK(student_quantile(9999, tail) == Approx(series(9999)).epsilon(1e-12));
  }
}

TEST_CASE("the chi-square tail is an exponential for two degrees, a normal tail for one",
          "[fast]") {
  for (const double x : {0.01, 1.0, 7.5, 80.0}) {
    CHECK(chi_square_tail(x, 2) == Approx(std::exp(-x / 2)).epsilon(1e-12));
    CHECK(chi_square_tail(x, 1) == Approx(std::erfc(std::sqrt(x / 2))).epsilon(1e-12));
  }
  CHECK(chi_square_tail(11.0704976935, 5) == Approx(0.05).epsilon(1e-9));
  CHECK(chi_square_tail(0, 3) == 1);
}

TEST_CASE("the chi-square quantile is where the tail is the rest; ln Gamma of factorials",
          "[fast]") {
  for (const double p : {0.025, 0.5, 0.975})
    CHECK(chi_square_tail(chi_square_quantile(7, p), 7) == Approx(1 - p).epsilon(1e-9));
  CHECK(log_gamma(11) == Approx(std::log(3628800.0)).epsilon(1e-14));
}

}  // namespace laws_test
