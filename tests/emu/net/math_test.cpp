// exp, log and cosine against MPFR.
#include "emu/net/math.hpp"

#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/catch.hpp"

namespace numemu::net {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kMaximumUlp = 1;

class Oracle {
 public:
  Oracle() { mpfr_init2(value_, 120); }
  ~Oracle() { mpfr_clear(value_); }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // |result - function(x)| in units in the last place of a float32 of that size.
  double ulps(int (*function)(mpfr_t, const mpfr_t, mpfr_rnd_t), float x, float result) {
    mpfr_set_flt(value_, x, MPFR_RNDN);
    function(value_, value_, MPFR_RNDN);
    const int exponent = mpfr_zero_p(value_)
                             ? -126
                             : std::max<int>(static_cast<int>(mpfr_get_exp(value_)) - 1, -126);
    mpfr_sub_d(value_, value_, result, MPFR_RNDN);
    return std::fabs(mpfr_get_d(value_, MPFR_RNDN)) * std::ldexp(1.0, 23 - exponent);
  }

 private:
  mpfr_t value_;
};

// Every `stride`-th positive and negative finite float32 goes to both functions.
void compare(std::uint32_t stride) {
  Oracle oracle;
  double worst_exp = 0, worst_log = 0;
  for (std::uint64_t bits = 0; bits < 0x7f800000; bits += stride) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (x > 0) worst_log = std::max(worst_log, oracle.ulps(mpfr_log, x, log(x)));
    for (const float signed_x : {x, -x}) {
      const float y = exp(signed_x);
      if (std::isfinite(y) && signed_x > -200)
        worst_exp = std::max(worst_exp, oracle.ulps(mpfr_exp, signed_x, y));
    }
  }
  CAPTURE(worst_exp, worst_log);
  CHECK(worst_exp <= kMaximumUlp);
  CHECK(worst_log <= kMaximumUlp);
}

TEST_CASE("exp and log are within 1 ulp of MPFR", "[fast]") { compare(10007); }

TEST_CASE("exp and log are within 1 ulp of MPFR, densely", "[slow]") { compare(1009); }

TEST_CASE("exp and log at the ends of their ranges", "[fast]") {
  CHECK(exp(kInfinity) == kInfinity);
  CHECK(exp(-kInfinity) == 0);
  CHECK(exp(0.0f) == 1);
  CHECK(exp(88.72283f) < kInfinity);
  CHECK(exp(88.72284f) == kInfinity);
  CHECK(exp(-103.97f) == 0x1p-149f);
  CHECK(exp(-103.98f) == 0);
  CHECK(log(0.0f) == -kInfinity);
  CHECK(log(-0.0f) == -kInfinity);
  CHECK(log(1.0f) == 0);
  CHECK(log(kInfinity) == kInfinity);
  CHECK(std::bit_cast<std::uint32_t>(log(-1.0f)) == 0x7fc00000);
  CHECK(std::bit_cast<std::uint32_t>(log(-kInfinity)) == 0x7fc00000);
  CHECK(std::bit_cast<std::uint32_t>(exp(std::bit_cast<float>(0xffffffffu))) == 0x7fc00000);
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
}  // namespace numemu::net
