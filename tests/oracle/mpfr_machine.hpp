// An IEEE-like format as MPFR emulates it: precision, range, subnormals.
#pragma once
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "formats/rounding.hpp"
#include "tests/oracle/specification.hpp"

namespace numemu::oracle {

// An MPFR number that frees itself.
class MpfrNumber {
 public:
  explicit MpfrNumber(mpfr_prec_t precision) { mpfr_init2(x_, precision); }
  ~MpfrNumber() { mpfr_clear(x_); }
  MpfrNumber(const MpfrNumber&) = delete;
  MpfrNumber& operator=(const MpfrNumber&) = delete;
  operator mpfr_ptr() { return x_; }

 private:
  mpfr_t x_;
};

// An IEEE-like format as MPFR sees it: 0.1xxx * 2^exponent with exponent in [emin, emax].
struct MpfrMachine {
  explicit MpfrMachine(const Specified& f)
      : precision(f.m + 1),
        normal_emin(1 - f.bias + 1),
        emin(normal_emin - f.m),
        emax((1 << f.e) - 2 - f.bias + 1) {}
  mpfr_prec_t precision;
  mpfr_exp_t normal_emin, emin, emax;
};

inline mpfr_rnd_t direction(RoundingMode mode) {
  return mode == RoundingMode::rtz   ? MPFR_RNDZ
         : mode == RoundingMode::rup ? MPFR_RNDU
         : mode == RoundingMode::rdn ? MPFR_RNDD
                                     : MPFR_RNDN;
}

// MPFR's own emulation of subnormals and of the range, as its manual describes.
inline int into_range(const MpfrMachine& m, mpfr_ptr y, int ternary, mpfr_rnd_t rounding) {
  const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
  mpfr_set_emin(m.emin);
  mpfr_set_emax(m.emax);
  ternary = mpfr_check_range(y, ternary, rounding);
  ternary = mpfr_subnormalize(y, ternary, rounding);
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  return ternary;
}

// The value as this format's code, from its fields.
inline std::uint64_t mpfr_code_of(const Specified& f, double value) {
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (f.bits - 1) : 0;
  if (std::isinf(value)) return sign | ((std::uint64_t{1} << f.e) - 1) << f.m;
  if (value == 0) return sign;
  const int field = std::max(std::ilogb(value) + f.bias, 0);
  const double unit = std::ldexp(1.0, std::max(field, 1) - f.bias - f.m);
  const auto significand = static_cast<std::uint64_t>(std::abs(value) / unit);
  if (field == 0) return sign | significand;
  return sign |
         ((static_cast<std::uint64_t>(field - 1) << f.m) + significand);  // the hidden bit counts
}

}  // namespace numemu::oracle
