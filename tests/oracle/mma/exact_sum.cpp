// Sums in units of 2^-1100: finer than every product of two float32.
#include "tests/oracle/mma/exact_sum.hpp"

#include <algorithm>

#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 takes cpp_int's small-number buffer, a member of a union, for uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/multiprecision/cpp_int.hpp>

namespace numemu::oracle::mma {
namespace {

using boost::multiprecision::cpp_int;

constexpr int kUnit = -1100;
constexpr std::uint32_t kNan = 0x7fc00000, kInfinity = 0x7f800000;

struct Sum {
  cpp_int number = 0;
  bool nan = false, plus_infinity = false, minus_infinity = false;
  bool all_minus_zero = true;

  void add_infinity(bool negative) { (negative ? minus_infinity : plus_infinity) = true; }
  void add(const cpp_int& magnitude, bool negative) {
    if (magnitude != 0 || !negative) all_minus_zero = false;
    if (negative) {
      number -= magnitude;
    } else {
      number += magnitude;
    }
  }
};

cpp_int shifted(const cpp_int& x, int exponent) {
  return x << static_cast<unsigned>(exponent - kUnit);
}

void add_value(Sum& sum, const Value& v) {
  if (v.kind == Class::nan) {
    sum.nan = true;
  } else if (v.kind == Class::infinite) {
    sum.add_infinity(v.negative);
  } else {
    sum.add(v.kind == Class::zero ? cpp_int(0) : shifted(v.significand, v.exponent), v.negative);
  }
}

void add_product(Sum& sum, const Value& a, const Value& b) {
  const bool negative = a.negative != b.negative;
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  if (a.kind == Class::nan || b.kind == Class::nan || (infinite && zero)) {
    sum.nan = true;
  } else if (infinite) {
    sum.add_infinity(negative);
  } else {
    sum.add(zero ? cpp_int(0)
                 : shifted(cpp_int(a.significand) * b.significand, a.exponent + b.exponent),
            negative);
  }
}

/// By long division of the magnitude: the quotient's last bit has weight 2^(lead - 23), at least
/// 2^-149.
std::uint32_t rounded(const cpp_int& magnitude, RoundingMode mode) {
  const int lead = static_cast<int>(msb(magnitude)) + kUnit;
  const int last = std::max(lead - 23, -149);
  const cpp_int weight = cpp_int(1) << static_cast<unsigned>(last - kUnit);
  cpp_int quotient, rest;
  divide_qr(magnitude, weight, quotient, rest);
  const cpp_int twice = rest * 2;
  const bool up =
      mode == RoundingMode::rne && (twice > weight || (twice == weight && bit_test(quotient, 0)));
  const auto significand = static_cast<std::uint32_t>(quotient) + (up ? 1u : 0u);
  if (significand == 0) return 0;
  // The hidden bit adds one to the exponent field, a carry one more.
  const std::int64_t code = (static_cast<std::int64_t>(last + 149) << 23) + significand;
  return code >= kInfinity ? kInfinity : static_cast<std::uint32_t>(code);
}

}  // namespace

std::uint32_t exact_sum(const std::vector<std::pair<Value, Value>>& factors, const Value& c,
                        RoundingMode mode) {
  Sum sum;
  add_value(sum, c);
  for (const auto& [a, b] : factors) add_product(sum, a, b);
  if (sum.nan || (sum.plus_infinity && sum.minus_infinity)) return kNan;
  if (sum.plus_infinity) return kInfinity;
  if (sum.minus_infinity) return kInfinity | 0x80000000u;
  if (sum.number == 0) return sum.all_minus_zero ? 0x80000000u : 0;
  const bool negative = sum.number < 0;
  return rounded(negative ? cpp_int(-sum.number) : sum.number, mode) |
         (negative ? 0x80000000u : 0u);
}

}  // namespace numemu::oracle::mma
