// The exact accumulator: adds a shifted significand to limbs and carries as far as needed.
#include "emu/unit/kulisch.hpp"

#include <algorithm>
#include <bit>

namespace numemu::unit {
namespace {

/// Leading bits of the limbs beyond the range: one for the sign, one because |v| < 2^top is tight.
constexpr int kHeadroom = 2;

}  // namespace

Exponents product_range(Exponents a, Exponents b) {
  if (a.empty() || b.empty()) return {};
  return {a.low + b.low, a.top + b.top};
}

Exponents join(Exponents a, Exponents b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.low, b.low), std::max(a.top, b.top)};
}

Kulisch::Kulisch(Exponents range, std::int64_t terms) : low_(range.low) {
  const int carries = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(terms, 1)));
  const int bits = std::max(range.top - range.low, 0) + carries + kHeadroom;
  // Two limbs more, because a significand of 128 bits may reach that far above its leading one.
  limbs_.resize(static_cast<std::size_t>(bits) / 64 + 3);
}

void Kulisch::clear() {
  std::fill(limbs_.begin(), limbs_.end(), 0);
  nan_ = positive_infinity_ = negative_infinity_ = false;
  all_negative_zero_ = all_positive_zero_ = true;
}

void Kulisch::add(const Value& v) { add_term(v.kind, v.negative, v.significand, v.exponent); }

void Kulisch::add_product(const Value& a, const Value& b) {
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  Class kind = Class::finite;
  if (a.kind == Class::nan || b.kind == Class::nan || (infinite && zero)) {
    kind = Class::nan;
  } else if (infinite) {
    kind = Class::infinite;
  } else if (zero) {
    kind = Class::zero;
  }
  add_term(kind, a.negative != b.negative, Wide{a.significand} * b.significand,
           a.exponent + b.exponent);
}

void Kulisch::add_term(Class kind, bool negative, Wide significand, int exponent) {
  all_negative_zero_ &= kind == Class::zero && negative;
  all_positive_zero_ &= kind == Class::zero && !negative;
  switch (kind) {
    case Class::nan:
      nan_ = true;
      return;
    case Class::infinite:
      (negative ? negative_infinity_ : positive_infinity_) = true;
      return;
    case Class::zero:
      return;
    case Class::finite:
      break;
  }
  const int below = low_ - exponent;  // trailing zeros of the significand that lie below the range
  if (below > 0) {
    significand >>= below;
    exponent = low_;
  }
  const int position = exponent - low_, shift = position % 64;
  auto limb = static_cast<std::size_t>(position / 64);
  const std::uint64_t low = static_cast<std::uint64_t>(significand);
  const std::uint64_t high = static_cast<std::uint64_t>(significand >> 64);
  const Wide low_part = Wide{low} << shift;
  const Wide high_part = (Wide{high} << shift) + (low_part >> 64);
  const std::uint64_t addend[3] = {static_cast<std::uint64_t>(low_part),
                                   static_cast<std::uint64_t>(high_part),
                                   static_cast<std::uint64_t>(high_part >> 64)};
  std::uint64_t carry = 0;
  for (std::size_t i = 0; limb < limbs_.size() && (i < 3 || carry != 0); ++i, ++limb) {
    const std::uint64_t part = i < 3 ? addend[i] : 0;
    const Wide sum =
        negative ? Wide{limbs_[limb]} - part - carry : Wide{limbs_[limb]} + part + carry;
    limbs_[limb] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64) & 1;
  }
}

Value Kulisch::sum(bool down) const {
  if (nan_ || (positive_infinity_ && negative_infinity_)) return {.kind = Class::nan};
  if (positive_infinity_ || negative_infinity_)
    return {.kind = Class::infinite, .negative = negative_infinity_};

  std::size_t lowest = 0;  // limb that is not zero
  while (lowest < limbs_.size() && limbs_[lowest] == 0) ++lowest;
  if (lowest == limbs_.size())
    return {.kind = Class::zero, .negative = !all_positive_zero_ && (all_negative_zero_ || down)};
  const bool negative = (limbs_.back() >> 63) != 0;
  // Negation is ~x + 1, whose carry ends in the lowest limb that is not zero.
  const auto magnitude = [&](std::size_t i) {
    return negative && i >= lowest ? ~limbs_[i] + (i == lowest) : limbs_[i];
  };
  std::size_t top = limbs_.size();
  while (magnitude(top - 1) == 0) --top;

  // The 64 bits from the leading one down straddle two limbs.
  const std::uint64_t above = magnitude(top - 1), below = top > 1 ? magnitude(top - 2) : 0;
  const int lead = std::countl_zero(above);
  Value value{Class::finite, negative, false, 0, above << lead};
  if (lead != 0) value.significand |= below >> (64 - lead);
  value.sticky = (below << lead) != 0 || lowest + 2 < top;
  value.exponent = low_ + static_cast<int>(top - 1) * 64 - lead;
  return value;
}

}  // namespace numemu::unit
