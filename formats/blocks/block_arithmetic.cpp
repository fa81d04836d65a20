// Exact arithmetic on values in 128-bit integers; what falls below them is remembered as sticky.
#include "formats/blocks/block_arithmetic.hpp"

#include <bit>
#include <utility>

namespace numemu {
namespace {

__extension__ typedef unsigned __int128 Wide;

int width_of(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(x));
}

// A sum before it is cut to a Value; `sticky` as there.
struct Sum {
  Wide magnitude = 0;
  int exponent = 0;
  bool negative = false, sticky = false;
};

Value cut(const Sum& sum) {
  if (sum.magnitude == 0) return {};
  const int drop = width_of(sum.magnitude) - 64;
  if (drop <= 0)
    return {Class::finite, sum.negative, sum.sticky, sum.exponent,
            static_cast<std::uint64_t>(sum.magnitude)};
  const Wide kept = sum.magnitude >> drop;
  return {Class::finite, sum.negative, sum.sticky || kept << drop != sum.magnitude,
          sum.exponent + drop, static_cast<std::uint64_t>(kept)};
}

// The sum of two finite numbers. The unit is that of the smaller one, but at most 2^kReach below
// the larger one's: what lies below is sticky. The larger one then has so many bits that no
// cancellation reaches the end.
Sum add(const Value& a, const Value& b) {
  constexpr int kReach = 80;
  const bool swap = a.exponent < b.exponent;
  const Value& high = swap ? b : a;
  const Value& low = swap ? a : b;
  Sum sum;
  sum.exponent = high.exponent - low.exponent <= kReach ? low.exponent : high.exponent - kReach;
  const Wide large = Wide{high.significand} << (high.exponent - sum.exponent);
  const int drop = sum.exponent - low.exponent;
  const std::uint64_t small = drop >= 64 ? 0 : low.significand >> drop;
  sum.sticky = drop >= 64 || small << drop != low.significand;
  if (high.negative == low.negative) {
    sum.magnitude = large + small;
    sum.negative = high.negative;
  } else if (large >= small) {
    sum.magnitude = large - small - (sum.sticky ? 1 : 0);
    sum.negative = high.negative;
  } else {
    sum.magnitude = small - large;
    sum.negative = low.negative;
  }
  return sum;
}

}  // namespace

Value exact_product(const Value& a, const Value& b) {
  Value product{.negative = a.negative != b.negative};
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  if (a.kind == Class::nan || b.kind == Class::nan || (zero && infinite)) {
    product.kind = Class::nan;
  } else if (infinite) {
    product.kind = Class::infinite;
  } else if (!zero) {
    product.kind = Class::finite;
    product.exponent = a.exponent + b.exponent;
    product.significand = a.significand * b.significand;
  }
  return product;
}

Value exact_sum(const Value& a, const Value& b) {
  if (a.kind == Class::nan || b.kind == Class::nan) return {.kind = Class::nan};
  if (a.kind == Class::infinite && b.kind == Class::infinite && a.negative != b.negative)
    return {.kind = Class::nan};
  if (a.kind == Class::infinite) return a;
  if (b.kind == Class::infinite) return b;
  if (a.kind == Class::zero && b.kind == Class::zero) return {.negative = a.negative && b.negative};
  if (a.kind == Class::zero) return b;
  if (b.kind == Class::zero) return a;
  return cut(add(a, b));
}

// A sticky sum is at least 2^(kReach + 23) units, because a larger term whose exponent exceeds the
// other's by more than kReach is a normal float32; an exact one is aligned to the left.
Value quotient_of_difference(const Value& a, const Value& b, const Value& s) {
  Value opposite = b;
  opposite.negative = !b.negative;
  if (a.kind != Class::finite || b.kind != Class::finite) {
    const Value sum = exact_sum(a, opposite);
    return exact_quotient(sum, s);
  }
  Sum sum = add(a, opposite);
  if (sum.magnitude == 0) return {};
  if (!sum.sticky) {
    const int shift = 128 - width_of(sum.magnitude);
    sum.magnitude <<= shift;
    sum.exponent -= shift;
  }
  const Wide divided = sum.magnitude / s.significand;
  sum.sticky |= divided * s.significand != sum.magnitude;
  sum.magnitude = divided;
  sum.exponent -= s.exponent;
  return cut(sum);
}

}  // namespace numemu
