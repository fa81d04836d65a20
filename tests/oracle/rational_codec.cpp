// The values of a format from the formula of the specification, and its special codes.
#include "tests/oracle/rational_codec.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::oracle {
namespace {

constexpr int kListedBits = 20;

Rational scaled(std::uint64_t significand, std::int64_t exponent) {
  return Rational(significand) * Rational::power_of_two(exponent);
}

}  // namespace

RationalCodec::RationalCodec(Specified f) : f_(std::move(f)) {
  if (f_.bits <= kListedBits) {
    const std::uint64_t count = largest(f_.integer && f_.is_signed) + 2;
    list_.reserve(count);
    for (std::uint64_t code = 0; code < count; ++code) list_.push_back(dyadic(formula(code)));
  }
  if (f_.integer) return;
  // The binade of the smallest normal number, and the one below it if exponents continued.
  const std::int64_t unit = -f_.bias - f_.m;
  const Wide hidden = Wide{1} << f_.m;
  switch (f_.lowest) {
    case Lowest::subnormals:
    case Lowest::zeros:  // field 1 is the lowest
      normal_ = dyadic(hidden, unit + 1);
      below_normal_ = dyadic(2 * hidden - 1, unit);
      break;
    case Lowest::normals:  // field 0 is
      normal_ = dyadic(hidden, unit);
      below_normal_ = dyadic(2 * hidden - 1, unit - 1);
      break;
    case Lowest::normals_and_zero:  // field 0 is, less its first number, which is read as zero
      normal_ = dyadic(hidden + 1, unit);
      below_normal_ = dyadic(hidden, unit);
      break;
  }
}

std::uint64_t RationalCodec::top() const {
  return (std::uint64_t{1} << (f_.is_signed ? f_.bits - 1 : f_.bits)) - 1;
}

std::uint64_t RationalCodec::largest(bool negative) const {
  if (f_.sign_only) return 0;
  if (f_.integer) return negative && f_.is_signed && !f_.symmetric ? top() + 1 : top();
  switch (f_.reserved) {
    case Reserved::nothing:
    case Reserved::negative_zero:
      return top();
    case Reserved::inf_and_nan:
      return (((std::uint64_t{1} << f_.e) - 1) << f_.m) - 1;
    case Reserved::all_ones:
    case Reserved::nan_or_inf:
      return top() - 1;
    case Reserved::p3109_extended:
      return f_.is_signed ? top() - 1 : top() - 2;
    case Reserved::p3109_finite:
      return f_.is_signed ? top() : top() - 1;
  }
  throw std::logic_error("no such encoding");
}

bool RationalCodec::has_nan() const {
  return f_.reserved != Reserved::nothing && !(f_.reserved == Reserved::inf_and_nan && f_.m == 0);
}

bool RationalCodec::has_infinity() const {
  return f_.reserved == Reserved::inf_and_nan || f_.reserved == Reserved::nan_or_inf ||
         f_.reserved == Reserved::p3109_extended;
}

bool RationalCodec::has_negative_zero() const {
  return !f_.integer && f_.is_signed &&
         (f_.reserved == Reserved::inf_and_nan || f_.reserved == Reserved::all_ones ||
          f_.reserved == Reserved::nothing);
}

std::uint64_t RationalCodec::infinity(bool negative) const {
  const std::uint64_t sign = negative ? top() + 1 : 0;
  if (f_.reserved == Reserved::inf_and_nan) return sign | ((std::uint64_t{1} << f_.e) - 1) << f_.m;
  if (f_.reserved == Reserved::p3109_extended && !f_.is_signed) return top() - 1;
  return sign | top();
}

bool RationalCodec::signed_nan() const {
  return f_.is_signed && f_.reserved != Reserved::negative_zero &&
         f_.reserved != Reserved::p3109_extended && f_.reserved != Reserved::p3109_finite;
}

// The canonical (quiet) one.
std::uint64_t RationalCodec::nan(bool negative) const {
  const std::uint64_t sign = negative && signed_nan() ? top() + 1 : 0;
  switch (f_.reserved) {
    case Reserved::inf_and_nan:
      return sign | ((std::uint64_t{2} << f_.e) - 1) << (f_.m - 1);
    case Reserved::all_ones:
    case Reserved::nan_or_inf:
      return sign | top();
    default:
      return f_.is_signed ? top() + 1 : top();
  }
}

Rational RationalCodec::formula(std::uint64_t magnitude) const {
  if (f_.integer) return f_.sign_only ? magnitude + 1 : magnitude;
  const std::uint64_t hidden = std::uint64_t{1} << f_.m, m = magnitude & (hidden - 1);
  const auto e = static_cast<std::int64_t>(magnitude >> f_.m);
  if (magnitude == 0 && has_zero()) return 0;
  const bool subnormal = e == 0 && (f_.lowest == Lowest::subnormals || f_.lowest == Lowest::zeros);
  return subnormal ? scaled(m, 1 - f_.bias - f_.m) : scaled(hidden + m, e - f_.bias - f_.m);
}

Dyadic RationalCodec::at(std::uint64_t magnitude) const {
  return list_.empty() ? dyadic(formula(magnitude)) : list_[magnitude];
}

Decoded RationalCodec::decode(std::uint64_t code) const {
  const bool upper_half = f_.is_signed && code > top();
  if (f_.sign_only) return {Class::finite, upper_half, 1};
  if (f_.integer) {
    if (code == 0) return {};
    return {Class::finite, upper_half,
            upper_half ? Rational::power_of_two(f_.bits) - code : Rational(code)};
  }
  const std::uint64_t magnitude = upper_half ? code - top() - 1 : code;
  // A single NaN has no sign.
  if (has_nan() && code == nan(upper_half)) return {Class::nan, upper_half && signed_nan(), 0};
  if (magnitude > largest()) {
    const bool infinite =
        has_infinity() && f_.reserved != Reserved::nan_or_inf && code == infinity(upper_half);
    if (infinite) return {Class::infinite, upper_half, 0};
    // IEEE 754-2019, 6.2.1: the first bit of the fraction is the quiet bit.
    const bool signalling =
        f_.reserved == Reserved::inf_and_nan && (magnitude >> (f_.m - 1)) % 2 == 0;
    return {Class::nan, upper_half, 0, signalling};
  }
  const bool flushed = f_.lowest == Lowest::zeros && magnitude >> f_.m == 0;
  if (flushed || formula(magnitude) == 0)
    return {Class::zero, upper_half && has_negative_zero(), 0};
  return {Class::finite, upper_half, formula(magnitude)};
}

}  // namespace numemu::oracle
