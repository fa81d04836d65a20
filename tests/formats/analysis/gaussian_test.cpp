// Tail functions of the normal law against MPFR in 200 bits.
#include "formats/analysis/gaussian.hpp"

#include <mpfr.h>

#include <cmath>
#include <utility>

#include "tests/catch.hpp"

using namespace numemu;

namespace {

// exp(t^2): the square's own rounding is 25^2 * 2^-53 = 7e-14 at the largest t that is not
// asymptotic.
constexpr double kScaledTolerance = 2e-13;
// One rounding of z / sqrt(2) moves erfc by z^2 * 2^-52 relative, 1.4e-14 at z = 8, and a narrow
// pair amplifies it.
constexpr double kBetweenTolerance = 2e-12;

class Exact {
 public:
  Exact() { mpfr_init2(value_, 200); }
  explicit Exact(double x) : Exact() { mpfr_set_d(value_, x, MPFR_RNDN); }
  ~Exact() { mpfr_clear(value_); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

double exact_between(double a, double b) {
  Exact low, high;
  for (const auto& [tail, x] : {std::pair<mpfr_ptr, double>{low, a}, {high, b}}) {
    mpfr_sqrt_ui(tail, 2, MPFR_RNDN);
    mpfr_d_div(tail, x, tail, MPFR_RNDN);
    mpfr_erfc(tail, tail, MPFR_RNDN);
  }
  mpfr_sub(low, low, high, MPFR_RNDN);
  return mpfr_get_d(low, MPFR_RNDN) / 2;
}

double exact_scaled_erfc(double t) {
  Exact square(t), tail(t);
  mpfr_sqr(square, square, MPFR_RNDN);
  mpfr_exp(square, square, MPFR_RNDN);
  mpfr_erfc(tail, tail, MPFR_RNDN);
  mpfr_mul(tail, tail, square, MPFR_RNDN);
  return mpfr_get_d(tail, MPFR_RNDN);
}

}  // namespace

TEST_CASE("normal mass between two points keeps its relative accuracy in both tails", "[fast]") {
  for (const double a : {-8.0, -3.0, -0.7, -0.01, 0.0, 0.3, 0.66, 0.68, 2.0, 5.0, 8.0}) {
    for (const double width : {0.01, 0.1, 1.0, 4.0}) {
      const double exact = exact_between(a, a + width);
      INFO("a " << a << " width " << width);
      CHECK(std::abs(gaussian::between(a, a + width) / exact - 1) < kBetweenTolerance);
    }
  }
}

TEST_CASE("scaled erfc equals exp(t^2) erfc(t) on both sides of its switch", "[fast]") {
  for (const double t : {0.0, 0.5, 3.0, 10.0, 24.999, 25.0, 25.001, 30.0, 100.0}) {
    const double exact = exact_scaled_erfc(t);
    INFO("t " << t);
    CHECK(std::abs(gaussian::scaled_erfc(t) / exact - 1) < kScaledTolerance);
  }
}
