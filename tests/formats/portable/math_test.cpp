// Elementary functions against MPFR in 200 bits, and at the ends of their ranges against the C
// library.
#include "formats/portable/math.hpp"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace math_test {

using namespace numemu;

namespace {

class Exact {
 public:
  Exact() { mpfr_init2(value_, 200); }
  ~Exact() { mpfr_clear(value_); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  operator mpfr_ptr() { return value_; }

  double ulps_from(double result) {
    Exact off;
    mpfr_sub_d(off, value_, result, MPFR_RNDN);
    const long unit = std::max<long>(mpfr_get_exp(value_) - 53, -1074);
    mpfr_mul_2si(off, off, mpfr_zero_p(value_) ? 1074 : -unit, MPFR_RNDN);
    return std::fabs(mpfr_get_d(off, MPFR_RNDN));
  }

 private:
  mpfr_t value_;
};

struct Function {
  const char* name;
  double (*own)(double);
  int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  double (*library)(double);
  double ulps, low, high;
};

int exact_scaled_erfc(mpfr_ptr value, mpfr_srcptr x, mpfr_rnd_t round) {
  Exact factor;
  mpfr_sqr(factor, x, round);
  mpfr_exp(factor, factor, round);
  mpfr_erfc(value, x, round);
  return mpfr_mul(value, value, factor, round);
}

const Function kFunctions[] = {
    {"exp", portable::exp, mpfr_exp, std::exp, 1, -746, 710},
    {"exp2", portable::exp2, mpfr_exp2, std::exp2, 1, -1076, 1024},
    {"expm1", portable::expm1, mpfr_expm1, std::expm1, 2, -60, 709},
    {"log", portable::log, mpfr_log, std::log, 1, 0, 1e9},
    {"log2", portable::log2, mpfr_log2, std::log2, 1, 0, 1e9},
    {"log10", portable::log10, mpfr_log10, std::log10, 1, 0, 1e9},
    {"log1p", portable::log1p, mpfr_log1p, std::log1p, 1, -1, 1e9},
    {"tanh", portable::tanh, mpfr_tanh, std::tanh, 5, -25, 25},
    {"atanh", portable::atanh, mpfr_atanh, std::atanh, 5, -1, 1},
    {"acos", portable::acos, mpfr_acos, std::acos, 5, -1, 1},
    {"erf", portable::erf, mpfr_erf, std::erf, 5, -7, 7},
    {"erfc", portable::erfc, mpfr_erfc, std::erfc, 5, -7, 27},
    {"scaled erfc", portable::scaled_erfc, exact_scaled_erfc, nullptr, 6, -26, 30},
};

bool same_end(double own, double library) {
  if (std::isnan(library)) return std::isnan(own);
  if (library == 0 || std::isinf(library))
    return own == library && std::signbit(own) == std::signbit(library);
  return std::fabs(own - library) <= 5e-15 * std::fabs(library);
}

}  // namespace

TEST_CASE("elementary functions are within their ulps of MPFR", "[fast]") {
  const RandomSource random{.seed = 1};
  Exact x, value;
  for (const Function& f : kFunctions) {
    double worst = 0, at = 0;
    for (std::uint64_t i = 0; i < 6000; ++i) {
      const double u = std::ldexp(random.bits(i, 32) + 0.5, -32);
      double tried = f.low + (f.high - f.low) * u;
      if (i % 3 == 1)
        tried = std::ldexp(f.low < 0 && i % 2 == 0 ? -u : u, 1 - static_cast<int>(i % 60));
      if (i % 3 == 2) tried = 1 + std::ldexp(u - 0.5, -static_cast<int>(i % 40));
      if (!(tried > f.low && tried < f.high)) continue;
      mpfr_set_d(x, tried, MPFR_RNDN);
      f.exact(value, x, MPFR_RNDN);
      const double ulps = value.ulps_from(f.own(tried));
      if (!(ulps <= worst)) worst = ulps, at = tried;
    }
    INFO(f.name << "(" << at << ") off by " << worst << " ulp");
    CHECK(worst <= f.ulps);
  }
}

TEST_CASE("pow and hypot are within 1 ulp of MPFR", "[fast]") {
  const RandomSource random{.seed = 2};
  Exact x, y, value;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double u = std::ldexp(random.bits(3 * i, 32) + 0.5, -32);
    const double v = std::ldexp(random.bits(3 * i + 1, 32) + 0.5, -32);
    const double base = i % 2 == 0 ? std::ldexp(u, static_cast<int>(i % 1000) - 500) : 1 + u / 1000;
    const double power = (2 * v - 1) * 1000 / std::max(1e-9, std::fabs(std::log2(base)));
    mpfr_set_d(x, base, MPFR_RNDN);
    mpfr_set_d(y, power, MPFR_RNDN);
    INFO("x " << base << " y " << power);
    mpfr_pow(value, x, y, MPFR_RNDN);
    REQUIRE(value.ulps_from(portable::pow(base, power)) <= 1);
    mpfr_hypot(value, x, y, MPFR_RNDN);
    REQUIRE(value.ulps_from(portable::hypot(base, power)) <= 1);
  }
}

TEST_CASE("powers of two and ten are exact", "[fast]") {
  for (int k = -1074; k < 1024; ++k) {
    REQUIRE(portable::exp2(k) == std::ldexp(1.0, k));
    REQUIRE(portable::log2(std::ldexp(1.0, k)) == k);
  }
  double ten = 1;
  for (int k = 0; k <= 22; ++k, ten *= 10) {
    CHECK(portable::log10(ten) == k);
    CHECK(portable::pow(10, k) == ten);
  }
}

TEST_CASE("zeros, infinities, NaN, overflow and underflow are the C library's", "[fast]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double ends[] = {0.0,
                         -0.0,
                         1,
                         -1,
                         0.5,
                         -0.5,
                         2,
                         -2,
                         3,
                         -3,
                         5e-324,
                         -5e-324,
                         1e308,
                         -1e308,
                         1e-310,
                         2.5,
                         -2.5,
                         1e17,
                         -1e17,
                         0x1p53,
                         0x1p52 + 1,
                         -0x1p52 - 1,
                         0x1.fffffffffffffp-1,
                         0x1.0000000000001p0,
                         kInfinity,
                         -kInfinity,
                         NAN};
  for (const double x : ends) {
    for (const Function& f : kFunctions) {
      INFO(f.name << "(" << x << ")");
      if (f.library != nullptr) CHECK(same_end(f.own(x), f.library(x)));
    }
    for (const double y : ends) {
      INFO("x " << x << " y " << y);
      CHECK(same_end(portable::pow(x, y), std::pow(x, y)));
      CHECK(same_end(portable::hypot(x, y), std::hypot(x, y)));
    }
  }
  CHECK(portable::scaled_erfc(kInfinity) == 0);
  CHECK(portable::scaled_erfc(-30) == kInfinity);
}

}  // namespace math_test
