// The inequalities behind the limits of a description (emu/unit/reference/fused.cpp is what they
// hold for).
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/description/bounds.hpp"

#include <algorithm>
#include <bit>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"

namespace numemu::unit {
namespace {

constexpr int kValueBits = 64;  ///< of a Value's significand
constexpr int kSumBits = 127;   ///< of the magnitude of a signed 128-bit sum
constexpr int kScaledGroupBits = 4;

/// Gathers index with 32 bits, so no step has more products than this.
constexpr std::int64_t kLargestDepth = std::int64_t{1} << 31;

int bits_of(const Format& f) {
  return f.kind == Kind::floating ? f.mantissa_bits + 1 : f.kind == Kind::integer ? f.bits : 1;
}

/// n addends below 2^b in magnitude add up to less than 2^(b + carry).
int carry_bits(const UnitDescription& u) {
  const int step = products_of_step(u);
  std::int64_t addends = step == 0 ? kLargestDepth : step;
  if (u.scaling.point == Scaling::Point::groups)
    addends = (addends + kScaledGroup - 1) / kScaledGroup;
  return std::bit_width(static_cast<std::uint64_t>(addends));
}

/// An addend is below 2^(E + this), where E is the exponent it is aligned with. A product of two
/// significands in [0, 2) stays below 2^2. A scaled group's E is that of its scales alone: 16
/// products below 2^(top_a + top_b), times two significands in [0, 2).
int bits_above_exponent(const UnitDescription& u) {
  constexpr int kSignificands = 2;
  if (u.scaling.point != Scaling::Point::groups) return kSignificands;
  const int top = exponents_of(*u.a).top + exponents_of(*u.b).top;
  return kSignificands + std::max(0, kScaledGroupBits + top);
}

}  // namespace

int significand_bits(const UnitDescription& u, const Format& operand) {
  return bits_of(u.input.format != nullptr ? *u.input.format : operand);
}

bool products_fit(const UnitDescription& u) {
  constexpr int kWidestAny = 24;  // any format: values of float32
  const int a = u.a == nullptr ? kWidestAny : significand_bits(u, *u.a);
  const int b = u.b == nullptr ? kWidestAny : significand_bits(u, *u.b);
  return a + b <= kValueBits;
}

bool group_sums_fit(const UnitDescription& u) {
  const Exponents a = exponents_of(*u.a), b = exponents_of(*u.b);
  const int sum = (a.top - a.low) + (b.top - b.low) + kScaledGroupBits;
  return sum + 2 * bits_of(*u.scaling.format) <= kValueBits;
}

// In units of 2^(largest exponent - F) every addend is below 2^(F + above), cut in whatever
// direction, and C below 2^(F + 1). The sum of n addends and C is below (n + 1) 2^(F + above) <=
// 2^(F + above + carry), which must fit 127 bits. With C after_alignment the sum of the products
// becomes a Value and is cut again, so that it must fit 64 bits.
int most_fraction_bits(const UnitDescription& u) {
  const int bits = u.c_entry == CEntry::after_alignment ? kValueBits : kSumBits;
  return bits - bits_above_exponent(u) - carry_bits(u);
}

// The same sum, now in units of 2^(larger exponent - second.fraction_bits). Both parts then meet
// below 2^(64 + 63) in the finer of the two units.
int most_second_fraction_bits(const UnitDescription& u) {
  return kValueBits - bits_above_exponent(u) - carry_bits(u);
}

}  // namespace numemu::unit
