// Rounding as the specification words it: neighbours, random words that go up, overflow, flags.
#include <bit>
#include <cmath>
#include <stdexcept>

#include "tests/oracle/rational_codec.hpp"

namespace numemu::oracle {
namespace {

constexpr std::uint64_t kNever = std::uint64_t{1} << 32;
constexpr auto kHigher = std::strong_ordering::greater;
constexpr auto kEqual = std::strong_ordering::equal;

std::int64_t nearest(const Rational& x, bool ties_to_odd) {
  const std::int64_t down = x.floor();
  const Rational rest = x - down;
  const Rational half(1, 2);
  const bool odd = down % 2 != 0;
  return rest > half || (rest == half && odd != ties_to_odd) ? down + 1 : down;
}

// Does a number strictly inside a gap go up, given which side of the middle it is on?
bool goes_up(RoundingMode mode, std::strong_ordering to_middle, bool low_is_odd, bool negative) {
  switch (mode) {
    case RoundingMode::rne:
      return to_middle == kHigher || (to_middle == kEqual && low_is_odd);
    case RoundingMode::rna:
      return to_middle != std::strong_ordering::less;
    case RoundingMode::rtz:
      return false;
    case RoundingMode::rup:
      return !negative;
    case RoundingMode::rdn:
      return negative;
    case RoundingMode::rodd:
      return !low_is_odd;
    case RoundingMode::sr:
      break;
  }
  throw std::logic_error("no deterministic rule");
}

}  // namespace

std::uint64_t first_word_up(const Rational& d, int n, StochasticVariant variant) {
  const std::int64_t one = std::int64_t{1} << n;
  const Rational steps = d * one;
  switch (variant) {
    case StochasticVariant::a:  // floor(d 2^n) + r >= 2^n
      return static_cast<std::uint64_t>(one - steps.floor());
    case StochasticVariant::b: {  // floor(d 2^(n+1)) + 2 r + 1 >= 2^(n+1)
      const std::int64_t need = 2 * one - 1 - (steps * 2).floor();
      return static_cast<std::uint64_t>((need + 1) / 2);
    }
    case StochasticVariant::c:  // RNE(d 2^n) + r >= 2^n
      return static_cast<std::uint64_t>(one - nearest(steps, false));
    case StochasticVariant::odd:
      return static_cast<std::uint64_t>(one - nearest(steps, true));
  }
  throw std::logic_error("no such variant");
}

// The last code whose value is not above x, which is at least the value of code 0.
std::uint64_t RationalCodec::find(const Dyadic& x, bool negative) const {
  std::uint64_t low = 0, high = largest(negative) + 1;
  while (high - low > 1) {
    const std::uint64_t half = low + (high - low) / 2;
    (x < at(half) ? high : low) = half;
  }
  return low;
}

Place RationalCodec::place(const Dyadic& x, bool negative) const {
  Place p;
  p.kind = x.zero() ? Class::zero : Class::finite;
  p.negative = negative;
  p.magnitude = x;
  const std::uint64_t last = largest(negative);
  p.beyond = x >= at(last + 1);
  p.under = x < at(0);
  if (!p.beyond && !p.under) {
    p.low = find(x, negative);
    const Dyadic below = at(p.low);
    p.on_value = x == below;
    p.to_middle = x <=> middle(below, at(p.low + 1));
  }
  if (!f_.integer && x < normal_) {
    p.size = x > below_normal_ ? Place::near_normal : Place::tiny;
    p.to_normal_middle = x <=> middle(below_normal_, normal_);
  }
  return p;
}

Place RationalCodec::place(const Rational& x) const {
  const Rational magnitude = abs(x);
  Place p = place(dyadic(magnitude), x < 0);
  if (p.magnitude.sticky) p.exact = magnitude;
  return p;
}

Place RationalCodec::special(Class kind, bool negative, bool signalling) const {
  Place p;
  p.kind = kind;
  p.negative = negative;
  p.signalling = signalling;
  return p;
}

Place RationalCodec::place(double x) const {
  if (std::isnan(x)) {
    const bool quiet = (std::bit_cast<std::uint64_t>(x) >> 51 & 1) != 0;
    return special(Class::nan, std::signbit(x), !quiet);
  }
  if (std::isinf(x)) return special(Class::infinite, std::signbit(x));
  return place(dyadic(x), std::signbit(x));
}

Plan RationalCodec::plan(const Place& p, const Rounding& rounding) const {
  const RoundingMode mode = rounding.mode;
  const RoundingMode inward = p.negative ? RoundingMode::rup : RoundingMode::rdn;
  Plan plan{&p, 0, mode == RoundingMode::rtz || mode == RoundingMode::rodd || mode == inward,
            kNever, kNever};
  if (p.kind != Class::finite) return plan;
  const bool inside = !p.beyond && !p.under && !p.on_value;
  const bool near = p.size == Place::near_normal;
  if (mode != RoundingMode::sr) {
    if (inside && goes_up(mode, p.to_middle, p.low % 2 != 0, p.negative)) plan.up_from = 0;
    // Counting codes down from the smallest normal number, whatever its own code is.
    const std::uint64_t normal_code = f_.lowest == Lowest::normals ? 0
                                      : f_.lowest == Lowest::normals_and_zero
                                          ? 1
                                          : std::uint64_t{1} << f_.m;
    if (near && goes_up(mode, p.to_normal_middle, normal_code % 2 == 0, p.negative))
      plan.normal_from = 0;
    return plan;
  }
  plan.word_mask = (std::uint64_t{1} << rounding.random_bits) - 1;
  const auto first_up = [&](std::optional<Rational>& share, const Dyadic& low, const Dyadic& high) {
    if (!share) {
      const Rational x = p.exact ? *p.exact : rational(p.magnitude), a = rational(low);
      share = (x - a) / (rational(high) - a);
    }
    return first_word_up(*share, rounding.random_bits, rounding.variant);
  };
  if (inside) plan.up_from = first_up(p.share, at(p.low), at(p.low + 1));
  if (near) plan.normal_from = first_up(p.normal_share, below_normal_, normal_);
  return plan;
}

// Two's complement, or the sign bit in front.
std::uint64_t RationalCodec::with_sign(std::uint64_t magnitude, bool negative) const {
  if (!negative) return magnitude;
  return f_.integer && !f_.sign_only ? 2 * (top() + 1) - magnitude : top() + 1 + magnitude;
}

Encoded RationalCodec::overflow(const Plan& plan, Overflow mode) const {
  const Place& p = *plan.place;
  const bool infinite = p.kind == Class::infinite;
  if (infinite && has_infinity() && mode != Overflow::saturate) return {infinity(p.negative), 0};
  std::uint64_t code = with_sign(largest(p.negative), p.negative);
  if (mode == Overflow::ieee && (infinite || !plan.inward_overflow)) {
    if (has_infinity()) {
      code = infinity(p.negative);
    } else if (has_nan()) {
      code = nan(p.negative);
    }
  }
  return {code, kOverflow | kInexact};
}

Encoded RationalCodec::encode(const Plan& plan, Overflow mode, std::uint32_t word) const {
  const Place& p = *plan.place;
  const Encoded refused{has_nan() ? nan(false) : 0, kInvalid};
  const std::uint64_t zero = p.negative && has_negative_zero() ? top() + 1 : 0;
  if (p.kind == Class::nan) {
    // IEEE 754-2019, 6.2: an operation on a signalling NaN is invalid.
    if (has_nan()) return {nan(p.negative), static_cast<std::uint8_t>(p.signalling ? kInvalid : 0)};
    return {largest(), kInvalid};
  }
  const bool no_sign = p.negative && !f_.is_signed;
  if (p.kind == Class::infinite) return no_sign ? refused : overflow(plan, mode);
  if (f_.sign_only) {  // zeros are +1; nothing is rounded or too large
    const bool one = p.kind == Class::finite && p.on_value;
    return {p.negative && p.kind == Class::finite ? top() + 1 : 0,
            static_cast<std::uint8_t>(one ? 0 : kInexact)};
  }
  // Where zero has no code it becomes the smallest number: inexact, and below the normal numbers.
  if (p.kind == Class::zero)
    return {zero, static_cast<std::uint8_t>(has_zero() ? 0 : kInexact | kUnderflow)};

  const std::uint64_t random = word & plan.word_mask;
  const std::uint64_t last = largest(p.negative);
  std::uint64_t code = p.beyond ? last + 1 : p.low + (random >= plan.up_from ? 1 : 0);
  bool inexact = !p.on_value;
  if (f_.lowest == Lowest::zeros && code >> f_.m == 0) {
    code = 0;
    inexact = true;
  }
  if (no_sign && !(code == 0 && has_zero())) return refused;
  if (code > last) return overflow(plan, mode);

  const bool tiny =
      p.size == Place::tiny || (p.size == Place::near_normal && random < plan.normal_from);
  const int flags = inexact ? kInexact | (tiny ? kUnderflow : 0) : 0;
  if (code == 0 && has_zero()) return {zero, static_cast<std::uint8_t>(flags)};
  return {with_sign(code, p.negative), static_cast<std::uint8_t>(flags)};
}

}  // namespace numemu::oracle
