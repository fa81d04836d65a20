#include "tests/oracle/mma/fused_step.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace numemu::oracle::mma {
namespace {

enum class NumberKind : std::uint8_t { number, infinite, nan };

/// (-1)^negative * significand * 2^(exponent - fraction bits of its encoding), as encoded: a
/// subnormal has the least normal exponent and no leading bit.
struct Number {
  NumberKind kind = NumberKind::number;
  bool negative = false;
  std::int64_t significand = 0;
  int exponent = 0;
};

constexpr int kZeroExponent = -126;

std::uint64_t ones(int bits) { return (std::uint64_t{1} << bits) - 1; }

Number read(const Encoding& e, std::uint64_t code) {
  const std::uint64_t fraction = code & ones(e.mantissa_bits);
  const auto field = static_cast<int>(code >> e.mantissa_bits & ones(e.exponent_bits));
  Number n;
  n.negative = (code >> (e.bits() - 1) & 1) != 0;
  if (field == static_cast<int>(ones(e.exponent_bits))) {
    if (e.top == Encoding::Top::ieee)
      n.kind = fraction == 0 ? NumberKind::infinite : NumberKind::nan;
    if (e.top == Encoding::Top::one_nan && fraction == ones(e.mantissa_bits))
      n.kind = NumberKind::nan;
  }
  const std::uint64_t leading = field == 0 ? 0 : std::uint64_t{1} << e.mantissa_bits;
  n.significand = static_cast<std::int64_t>(fraction | leading);
  n.exponent = n.significand == 0 ? kZeroExponent : std::max(field, 1) - e.bias();
  return n;
}

Number product(const Number& a, const Number& b) {
  Number p{NumberKind::number, a.negative != b.negative, a.significand * b.significand,
           a.exponent + b.exponent};
  const auto zero = [](const Number& n) {
    return n.kind == NumberKind::number && n.significand == 0;
  };
  if (a.kind == NumberKind::nan || b.kind == NumberKind::nan) p.kind = NumberKind::nan;
  if (p.kind == NumberKind::nan || (a.kind == NumberKind::number && b.kind == NumberKind::number))
    return p;
  p.kind = zero(a) || zero(b) ? NumberKind::nan : NumberKind::infinite;
  return p;
}

/// (-1)^negative * magnitude * 2^exponent, rounded to `kept` fraction bits.
std::uint64_t write(const Encoding& e, int kept, bool to_nearest, bool negative,
                    std::uint64_t magnitude, int exponent) {
  const std::uint64_t sign = negative ? std::uint64_t{1} << (e.bits() - 1) : 0;
  const std::uint64_t infinity = ones(e.exponent_bits) << e.mantissa_bits;
  const int least = 1 - e.bias();
  const int binade = std::max(exponent + static_cast<int>(std::bit_width(magnitude)) - 1, least);
  const int drop = binade - kept - exponent;
  std::uint64_t whole = 0;
  if (drop <= 0) {
    whole = magnitude << -drop;
  } else if (drop < 64) {
    whole = magnitude >> drop;
    const std::uint64_t rest = magnitude & ones(drop), half = std::uint64_t{1} << (drop - 1);
    if (to_nearest && (rest > half || (rest == half && (whole & 1) != 0))) ++whole;
  }
  // The leading bit of `whole` adds one to the exponent's field, a carry another.
  const auto field = static_cast<std::uint64_t>(binade - least) << kept;
  const std::uint64_t code = (field + whole) << (e.mantissa_bits - kept);
  return sign | (binade > e.bias() ? infinity : std::min(code, infinity));
}

/// One step over the products and the register of encoding `in`.
std::uint64_t step(const FusedSteps& unit, const Encoding& in, std::span<const Number> products,
                   const Number& c) {
  bool nan = c.kind == NumberKind::nan, positive = false, negative = false;
  constexpr int kNone = -10000;
  int largest = unit.floor.value_or(kNone);
  const auto meet = [&](const Number& n) {
    nan = nan || n.kind == NumberKind::nan;
    if (n.kind == NumberKind::infinite) (n.negative ? negative : positive) = true;
  };
  meet(c);
  // A zero C adds nothing, whatever the others are cut to.
  if (c.significand != 0) largest = std::max(largest, c.exponent);
  for (const Number& p : products) {
    meet(p);
    largest = std::max(largest, p.exponent);
  }
  const Encoding& d = unit.d;
  if (nan || (positive && negative)) return ones(d.bits() - 1);
  if (positive || negative)
    return ones(d.exponent_bits) << d.mantissa_bits |
           (negative ? std::uint64_t{1} << (d.bits() - 1) : 0);
  const int unit_exponent = largest - unit.fraction;
  std::int64_t sum = 0;
  const auto add = [&](const Number& n, int fraction_bits) {
    if (n.significand == 0) return;
    const int up = n.exponent - fraction_bits - unit_exponent;
    const std::int64_t cut = up >= 0 ? n.significand << up : n.significand >> std::min(-up, 63);
    sum += n.negative ? -cut : cut;
  };
  add(c, in.mantissa_bits);
  for (const Number& p : products) add(p, unit.a.mantissa_bits + unit.b.mantissa_bits);
  if (sum == 0) return 0;
  const bool half = d.exponent_bits == 5;
  return write(d, half ? d.mantissa_bits : unit.kept, half, sum < 0,
               static_cast<std::uint64_t>(sum < 0 ? -sum : sum), unit_exponent);
}

}  // namespace

std::uint64_t fused_dot(const FusedSteps& unit, std::span<const std::uint64_t> a,
                        std::span<const std::uint64_t> b, std::uint64_t c) {
  Encoding held = unit.c;
  std::uint64_t code = c;
  std::vector<Number> products;
  for (std::size_t first = 0; first < a.size(); first += static_cast<std::size_t>(unit.group)) {
    const std::size_t end = std::min(a.size(), first + static_cast<std::size_t>(unit.group));
    products.clear();
    for (std::size_t k = first; k < end; ++k)
      products.push_back(product(read(unit.a, a[k]), read(unit.b, b[k])));
    code = step(unit, held, products, read(held, code));
    held = unit.d;
  }
  return code;
}

}  // namespace numemu::oracle::mma
