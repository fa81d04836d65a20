// The functions of emu/net/math.hpp against MPFR.
#include "emu/net/math.hpp"

#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "formats/portable/vector_functions.hpp"
#include "tests/catch.hpp"

namespace numemu::net::math_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Half an ulp for the rounding to float32, and the float64 cores' error below 2^-13 ulp.
constexpr double kMaximumUlp = 0.5 + 0x1p-13;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

class Oracle {
 public:
  Oracle() { mpfr_inits2(160, value_, help_, nullptr); }
  ~Oracle() { mpfr_clears(value_, help_, nullptr); }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  void exp(float x) { unary(mpfr_exp, x); }
  void log(float x) { unary(mpfr_log, x); }
  void tanh(float x) { unary(mpfr_tanh, x); }
  void erf(float x) { unary(mpfr_erf, x); }
  void sin(float x) { unary(mpfr_sin, x); }
  void cos(float x) { unary(mpfr_cos, x); }
  void tan(float x) { unary(mpfr_tan, x); }
  void sigmoid(float x) {
    unary(mpfr_exp, -x);
    mpfr_add_ui(value_, value_, 1, MPFR_RNDN);
    mpfr_ui_div(value_, 1, value_, MPFR_RNDN);
  }
  void normal_cdf(float x) {  // erfc(-x / sqrt 2) / 2
    mpfr_sqrt_ui(help_, 2, MPFR_RNDN);
    mpfr_set_flt(value_, -x, MPFR_RNDN);
    mpfr_div(value_, value_, help_, MPFR_RNDN);
    mpfr_erfc(value_, value_, MPFR_RNDN);
    mpfr_div_2ui(value_, value_, 1, MPFR_RNDN);
  }
  void pow(float x, float y) {
    mpfr_set_flt(value_, x, MPFR_RNDN);
    mpfr_set_flt(help_, y, MPFR_RNDN);
    mpfr_pow(value_, value_, help_, MPFR_RNDN);
  }

  // |result - value| in units in the last place of a float32 of that size; for values beyond the
  // largest float32, 0 if the result is that infinity.
  double ulps(float result) {
    const int exponent = mpfr_zero_p(value_)
                             ? -126
                             : std::max<int>(static_cast<int>(mpfr_get_exp(value_)) - 1, -126);
    if (std::isinf(result) || exponent > 127)
      return mpfr_get_flt(value_, MPFR_RNDN) == result ? 0 : 1e9;
    mpfr_sub_d(help_, value_, result, MPFR_RNDN);
    return std::fabs(mpfr_get_d(help_, MPFR_RNDN)) * std::ldexp(1.0, 23 - exponent);
  }

 private:
  void unary(int (*function)(mpfr_t, const mpfr_t, mpfr_rnd_t), float x) {
    mpfr_set_flt(value_, x, MPFR_RNDN);
    function(value_, value_, MPFR_RNDN);
  }
  mpfr_t value_, help_;
};

struct Function {
  const char* name;
  float (*ours)(float);
  void (Oracle::*exact)(float);
  double low, high;  // beyond these the result is constant, and checked at the ends
};

constexpr Function kFunctions[] = {
    {"exp", exp, &Oracle::exp, -120, 100},
    {"log", log, &Oracle::log, 0, 1e39},
    {"tanh", tanh, &Oracle::tanh, -40, 40},
    {"sigmoid", sigmoid, &Oracle::sigmoid, -120, 40},
    {"erf", erf, &Oracle::erf, -12, 12},
    {"normal_cdf", normal_cdf, &Oracle::normal_cdf, -16, 12},
    {"sin", sin, &Oracle::sin, -1e39, 1e39},
    {"cos", cos, &Oracle::cos, -1e39, 1e39},
    {"tan", tan, &Oracle::tan, -1e39, 1e39},
};

void check_at(const Function& function, Oracle& oracle, float x, double& worst) {
  if (!(x >= function.low && x <= function.high) || (x == 0 && function.low == 0)) return;
  (oracle.*function.exact)(x);
  const double error = oracle.ulps(function.ours(x));
  if (!(error <= worst)) worst = error;
}

// Every `stride`-th positive and negative finite float32 goes to every function.
void compare(std::uint32_t stride) {
  Oracle oracle;
  for (const Function& function : kFunctions) {
    double worst = 0;
    for (std::uint64_t b = 0; b < 0x7f800000; b += stride) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(b));
      check_at(function, oracle, x, worst);
      check_at(function, oracle, -x, worst);
    }
    CAPTURE(function.name, worst);
    CHECK(worst <= kMaximumUlp);
  }
}

TEST_CASE(
    "exp log tanh sigmoid erf sin cos tan and the normal distribution are within 1 ulp of MPFR",
    "[fast]") {
  compare(70001);
}

TEST_CASE("the same densely", "[slow]") { compare(4001); }

TEST_CASE("they are within 1 ulp of MPFR where their formulas meet and their results end",
          "[fast]") {
  Oracle oracle;
  for (const Function& function : kFunctions) {
    double worst = 0;
    for (const double centre :
         {0x1p-149,   0x1p-126, 0x1p-10,   0.34657359, 0.5,      0.70710678, 1.0,
          1.41421356, 3.5,      3.9192059, 4.9497475,  5.4,      9.010913,   10.0,
          10.5,       14.17,    14.849242, 17.33,      88.72284, 103.97}) {
      const std::int64_t middle = bits(static_cast<float>(centre));
      for (std::int64_t b = std::max<std::int64_t>(0, middle - 40); b <= middle + 40; ++b) {
        const float x = std::bit_cast<float>(static_cast<std::uint32_t>(b));
        check_at(function, oracle, x, worst);
        check_at(function, oracle, -x, worst);
      }
    }
    CAPTURE(function.name, worst);
    CHECK(worst <= kMaximumUlp);
  }
}

TEST_CASE("they have their limits at zeros and infinities and one NaN", "[fast]") {
  CHECK(exp(kInfinity) == kInfinity);
  CHECK(bits(exp(-kInfinity)) == 0);
  CHECK(exp(0.0f) == 1);
  CHECK(exp(88.72283f) < kInfinity);
  CHECK(exp(88.72284f) == kInfinity);
  CHECK(exp(-103.97f) == 0x1p-149f);
  CHECK(exp(-103.98f) == 0);
  CHECK(log(0.0f) == -kInfinity);
  CHECK(log(-0.0f) == -kInfinity);
  CHECK(log(1.0f) == 0);
  CHECK(log(kInfinity) == kInfinity);
  CHECK(bits(log(-1.0f)) == 0x7fc00000);
  CHECK(bits(log(-kInfinity)) == 0x7fc00000);
  for (const auto& odd : {tanh, erf}) {
    CHECK(odd(kInfinity) == 1);
    CHECK(odd(-kInfinity) == -1);
    CHECK(odd(1e38f) == 1);
    CHECK(bits(odd(0.0f)) == 0);
    CHECK(bits(odd(-0.0f)) == 0x80000000);
  }
  for (const auto& distribution : {sigmoid, normal_cdf}) {
    CHECK(distribution(kInfinity) == 1);
    CHECK(distribution(3e38f) == 1);
    CHECK(bits(distribution(-kInfinity)) == 0);
    CHECK(bits(distribution(-3e38f)) == 0);
    CHECK(distribution(0.0f) == 0.5f);
  }
  for (const Function& function : kFunctions) {
    CAPTURE(function.name);
    CHECK(bits(function.ours(std::bit_cast<float>(0xffffffffu))) == 0x7fc00000);
  }
}

TEST_CASE("pow is within 1 ulp of MPFR", "[fast]") {
  Oracle oracle;
  double worst = 0;
  const std::vector<float> exponents{0.5f,     -0.5f,  1,  2,     3,       -1,     -2,
                                     1 / 3.0f, 0.001f, 17, -7.5f, 100.25f, 1e-30f, 16777215.0f};
  for (const float y : exponents) {
    for (std::uint64_t b = 1; b < 0x7f800000; b += 770001) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(b));
      oracle.pow(x, y);
      const double error = oracle.ulps(pow(x, y));
      if (!(error <= worst)) worst = error;
      if (std::floor(y) != y) continue;
      oracle.pow(-x, y);
      const double mirrored = oracle.ulps(pow(-x, y));
      if (!(mirrored <= worst)) worst = mirrored;
    }
  }
  for (std::uint32_t i = 0; i < 4000; ++i) {  // near 1, with exponents that bring the result back
    const float x = 1 + (static_cast<float>(i) - 2000) * 0x1p-18f, y = 4000.0f + i;
    oracle.pow(x, y);
    worst = std::max(worst, oracle.ulps(pow(x, y)));
  }
  CAPTURE(worst);
  CHECK(worst <= kMaximumUlp);
}

TEST_CASE("pow at the special cases of IEEE 754 is that of MPFR", "[fast]") {
  const std::vector<float> values{0.0f,
                                  -0.0f,
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  0.5f,
                                  -0.5f,
                                  3,
                                  -3,
                                  2.5f,
                                  -2.5f,
                                  1e30f,
                                  -1e30f,
                                  kInfinity,
                                  -kInfinity,
                                  std::nanf(""),
                                  0x1p24f,
                                  0x1.fffffep23f};
  mpfr_t a, b;
  mpfr_inits2(24, a, b, nullptr);
  for (const float x : values) {
    for (const float y : values) {
      mpfr_set_flt(a, x, MPFR_RNDN);
      mpfr_set_flt(b, y, MPFR_RNDN);
      mpfr_pow(a, a, b, MPFR_RNDN);
      const float expected = mpfr_get_flt(a, MPFR_RNDN);
      CAPTURE(x, y);
      CHECK(bits(pow(x, y)) == (expected != expected ? 0x7fc00000 : bits(expected)));
    }
  }
  mpfr_clears(a, b, nullptr);
}

TEST_CASE("powers of two meet at sqrt 2 times the lower one", "[fast]") {
  // The published examples.
  for (const auto& [x, power] : std::vector<std::pair<double, double>>{
           {.3, .25}, {-5, -4}, {.75, 1}, {1.4142, 1}, {1.4143, 2}, {100, 128}, {.001, 0x1p-10}})
    CHECK(core::power_of_two(x) == power);
  const double root = std::sqrt(2.0);  // rounded upward
  for (const double scale : {1.0, 0x1p-149, 0x1p127, -0x1p-1000}) {
    CHECK(core::power_of_two(root * scale) == 2 * scale);
    CHECK(core::power_of_two(std::nextafter(root, 0) * scale) == scale);
    CHECK(core::power_of_two(scale) == scale);
  }
  CHECK(std::signbit(core::power_of_two(-0.0)));
  CHECK(core::power_of_two(0) == 0);
  CHECK(core::power_of_two(-HUGE_VAL) == -HUGE_VAL);
  CHECK(std::isnan(core::power_of_two(std::bit_cast<double>(~std::uint64_t{0}))));
}

TEST_CASE("cos_pi is within 2^-48 of MPFR", "[fast]") {
  constexpr double kTolerance = 0x1p-48;
  mpfr_t value, pi;
  mpfr_init2(value, 120);
  mpfr_init2(pi, 120);
  mpfr_const_pi(pi, MPFR_RNDN);
  for (int i = -3000; i <= 3000; ++i) {
    const double x = i * 0.00123456789;
    mpfr_mul_d(value, pi, x, MPFR_RNDN);
    mpfr_cos(value, value, MPFR_RNDN);
    mpfr_sub_d(value, value, cos_pi(x), MPFR_RNDN);
    CHECK(std::fabs(mpfr_get_d(value, MPFR_RNDN)) <= kTolerance);
  }
  mpfr_clear(value);
  mpfr_clear(pi);
  CHECK(cos_pi(0) == Approx(1).margin(kTolerance));
  CHECK(cos_pi(0.5) == 0);
  CHECK(cos_pi(-1) == Approx(-1).margin(kTolerance));
}

}  // namespace
}  // namespace numemu::net::math_test
