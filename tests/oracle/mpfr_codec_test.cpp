// MPFR as a second oracle: float32 and float64 into IEEE-like formats, values and flags.
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mpfr_machine.hpp"
#include "tests/oracle/specification.hpp"

namespace numemu::mpfr_codec_test {
namespace {

using Number = oracle::MpfrNumber;
using Machine = oracle::MpfrMachine;
using oracle::direction;
using oracle::into_range;
using oracle::mpfr_code_of;

struct Witness {
  double value = 0;
  int flags = 0;
};

// With exponents without bounds: the precision alone rounds. This is what tininess looks at.
int round_unbounded(mpfr_ptr y, mpfr_ptr x, RoundingMode mode) {
  switch (mode) {
    case RoundingMode::rne:
      return mpfr_set(y, x, MPFR_RNDN);
    case RoundingMode::rna:
      return mpfr_round_nearest_away(mpfr_set, y, x);
    case RoundingMode::rtz:
      return mpfr_set(y, x, MPFR_RNDZ);
    case RoundingMode::rup:
      return mpfr_set(y, x, MPFR_RNDU);
    case RoundingMode::rdn:
      return mpfr_set(y, x, MPFR_RNDD);
    default:
      throw std::logic_error("MPFR has no such rounding");
  }
}

// Ties away have no direction of their own in MPFR's subnormals: round once at the precision that
// is left at this exponent; below half the smallest number (no bit left) compare.
int away_from_zero_subnormal(const Machine& m, mpfr_ptr y, mpfr_ptr x, mpfr_exp_t exponent) {
  const mpfr_exp_t left = exponent - m.emin + 1;
  if (left >= MPFR_PREC_MIN) {
    Number narrow(left);
    const int ternary = mpfr_round_nearest_away(mpfr_set, narrow, x);
    mpfr_set(y, narrow, MPFR_RNDN);
    return ternary;
  }
  // |x| < smallest: at or above its half (exponent emin - 1, as smallest = 0.1 * 2^emin) it goes
  // up.
  const int sign = mpfr_sgn(x);
  if (exponent == m.emin - 1) {
    mpfr_set_si_2exp(y, sign, m.emin - 1, MPFR_RNDN);
    return sign;
  }
  mpfr_set_zero(y, sign);
  return -sign;
}

Witness witness(const Machine& m, double x_double, RoundingMode mode) {
  Number x(53), unbounded(m.precision), y(m.precision);
  mpfr_set_d(x, x_double, MPFR_RNDN);
  round_unbounded(unbounded, x, mode);
  const bool tiny = mpfr_get_exp(unbounded) < m.normal_emin;
  int ternary = round_unbounded(y, x, mode);
  mpfr_clear_flags();
  if (mode == RoundingMode::rna && mpfr_get_exp(x) < m.normal_emin) {
    ternary = away_from_zero_subnormal(m, y, x, mpfr_get_exp(x));
  } else {
    ternary = into_range(m, y, ternary, direction(mode));
  }
  Witness result{mpfr_get_d(y, MPFR_RNDN), 0};
  const bool overflow = mpfr_overflow_p() != 0;
  if (ternary != 0) result.flags |= kInexact;
  if (ternary != 0 && tiny) result.flags |= kUnderflow;
  if (overflow) result.flags |= kOverflow;
  return result;
}

constexpr RoundingMode kModes[] = {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                   RoundingMode::rup, RoundingMode::rdn};
// M >= 1: without mantissa bits "even" means the code, where MPFR looks at its last significant
// bit.
constexpr const char* kFormats[] = {
    "float16",   "bfloat16", "float8_e5m2", "float8_e4m3", "float8_e3m4", "hfp16_e6m9",
    "hfp8_e5m2", "tfloat32", "float32",     "e8m10b100",   "e2m5",        "e7m12",
    "e10m5",     "e5m2b20",  "e3m1b-3",     "e11m20",      "e4m1b5"};

// Random words with the weight on what matters: around the ends of the format, few bits, ties.
class Inputs {
 public:
  Inputs(const Machine& m, std::uint64_t seed) : machine_(m), seed_(seed) {}

  double next() {
    const std::uint64_t pick = word() % 8;
    const auto within = [&](mpfr_exp_t low, mpfr_exp_t high) {
      return static_cast<int>(low + static_cast<mpfr_exp_t>(word() % (high - low + 1)));
    };
    const int exponent = pick < 3   ? within(machine_.emin - 4, machine_.normal_emin + 1)
                         : pick < 5 ? within(machine_.emax - 2, machine_.emax + 2)
                                    : within(machine_.emin, machine_.emax);
    std::uint64_t bits = word() << 32 | word();
    // Keep a few bits more than the format has: exact cases and ties; then a hair off a tie.
    const int kept = static_cast<int>(machine_.precision + word() % 4) - 1;
    const int shape = static_cast<int>(word() % 4);
    if (shape != 0) bits &= ~(~std::uint64_t{0} >> std::min(kept, 62));
    if (shape == 2) bits |= std::uint64_t{1} << 12;
    if (shape == 3) bits |= ~std::uint64_t{0} >> (kept + 1) & ~std::uint64_t{0xfff};
    const double x = std::ldexp(1 + static_cast<double>(bits >> 12) * 0x1p-52, exponent - 1);
    const double safe = std::isinf(x) || x == 0 ? 1.0 : x;
    return (word() & 1) != 0 ? -safe : safe;
  }

 private:
  std::uint64_t word() { return RandomSource{.seed = seed_}.bits(count_++, 32); }
  Machine machine_;
  std::uint64_t seed_, count_ = 0;
};

struct Count {
  std::int64_t comparisons = 0, differences = 0;
  std::string first;
};

void compare(const Format& f, const oracle::Specified& spec, const Machine& m, double x,
             Count& count) {
  for (const RoundingMode mode : kModes) {
    const Witness ieee = witness(m, x, mode);
    Witness saturated = ieee;
    if (std::isinf(ieee.value))
      saturated.value = std::copysign(std::ldexp(2 - std::ldexp(1, -spec.m), m.emax - 1), x);
    for (const Overflow overflow : {Overflow::ieee, Overflow::saturate, Overflow::propagate}) {
      const Witness& want = overflow == Overflow::ieee ? ieee : saturated;
      const Encoded got = encode(f, value_of(x), {.mode = mode}, overflow);
      ++count.comparisons;
      if (got.code == mpfr_code_of(spec, want.value) && got.flags == want.flags) continue;
      if (count.differences++ == 0) {
        char text[128];
        std::snprintf(text, sizeof text, "%s of %a %s %s: code %llx flags %d, MPFR %a flags %d",
                      f.name.c_str(), x, to_string(Rounding{.mode = mode}).c_str(),
                      to_string(overflow).c_str(), static_cast<unsigned long long>(got.code),
                      got.flags, want.value, want.flags);
        count.first = text;
      }
    }
  }
}

void prove(int inputs_per_format, bool as_float32) {
  Count count;
  std::uint64_t seed = 0;
  for (const char* name : kFormats) {
    const Format& f = find_format(name);
    oracle::Specified spec = oracle::specified(name);
    if (as_float32 && spec.m > 20) continue;
    const Machine m(spec);
    Inputs inputs(m, ++seed);
    for (int i = 0; i < inputs_per_format; ++i) {
      double x = inputs.next();
      if (as_float32) x = static_cast<float>(x);
      if (x == 0 || std::isinf(x)) continue;
      compare(f, spec, m, x, count);
    }
  }
  WARN("encode against MPFR, " << std::size(kFormats)
                               << " formats x 5 modes x 3 overflows: " << count.comparisons
                               << " comparisons, " << count.differences << " differences");
  INFO(count.first);
  CHECK(count.comparisons > 0);
  CHECK(count.differences == 0);
}

TEST_CASE("mpfr: random and structured float64 into IEEE-like formats", "[fast]") {
  prove(8000, false);
}

TEST_CASE("mpfr: random and structured float32 into IEEE-like formats", "[fast]") {
  prove(8000, true);
}

TEST_CASE("mpfr: a million float64 per IEEE-like format", "[slow]") { prove(1000000, false); }

// Every value of the format and every midpoint with its float64 neighbours, from MPFR's side.
TEST_CASE("mpfr: every value, midpoint and neighbour of small IEEE-like formats", "[fast]") {
  Count count;
  for (const char* name : {"float8_e5m2", "float8_e4m3", "float8_e3m4", "e2m5", "e4m1b5"}) {
    const Format& f = find_format(name);
    const oracle::Specified spec = oracle::specified(name);
    const Machine m(spec);
    const std::uint64_t largest = (((std::uint64_t{1} << spec.e) - 1) << spec.m) - 1;
    for (std::uint64_t half = 1; half <= 2 * largest + 3; ++half) {
      // Code c and the middle between c and c + 1 in turn; beyond the largest in its last step.
      const std::uint64_t c = half / 2, e = std::max<std::uint64_t>(c >> spec.m, 1);
      const std::uint64_t fraction =
          (c & ((1U << spec.m) - 1)) | (c >> spec.m != 0 ? 1U << spec.m : 0);
      const double x = std::ldexp(static_cast<double>(fraction) + (half % 2 != 0 ? 0.5 : 0),
                                  static_cast<int>(e) - spec.bias - spec.m);
      for (const double y : {x, std::nextafter(x, 0), std::nextafter(x, HUGE_VAL),
                             double{std::nextafterf(static_cast<float>(x), 0)},
                             double{std::nextafterf(static_cast<float>(x), HUGE_VALF)}}) {
        if (y == 0) continue;
        compare(f, spec, m, y, count);
        compare(f, spec, m, -y, count);
      }
    }
  }
  WARN("encode against MPFR, every value and midpoint: " << count.comparisons << " comparisons, "
                                                         << count.differences << " differences");
  INFO(count.first);
  CHECK(count.differences == 0);
}

}  // namespace
}  // namespace numemu::mpfr_codec_test
