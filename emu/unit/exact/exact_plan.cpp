// Chooses the cheapest exact way: float32, float64, or the fewest pairs of pieces.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/exact/exact_plan.hpp"

#include <algorithm>
#include <bit>

#include "emu/unit/kulisch.hpp"

namespace numemu::unit {
namespace {

// Limits of the host formats: bits of precision, smallest exponent of a bit, first exponent that
// overflows.
struct Limits {
  int bits, low, top;
};
constexpr Limits kFloat32{24, -149, 128}, kFloat64{53, -1074, 1024};
/// Sums of pieces are scaled by powers of two in float64 and added in 127 bits and a sign.
constexpr Limits kCombined{126, -1000, 1000};
constexpr int kMaxPieces = 3;

bool within(Exponents range, const Limits& limits) {
  return range.empty() || (range.top - range.low <= limits.bits && range.low >= limits.low &&
                           range.top <= limits.top);
}

/// Whether every value of the range is a number of the host format (single values are at most 24
/// bits wide).
bool representable(Exponents range, const Limits& limits) {
  return range.empty() || (range.low >= limits.low && range.top <= limits.top);
}

Exponents sum_of(Exponents term, std::int64_t count) {
  if (term.empty() || count == 0) return {};
  return {term.low,
          term.top + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)))};
}

Exponents sum_of(Exponents a, Exponents b) {
  if (a.empty() || b.empty()) return join(a, b);
  return {std::min(a.low, b.low), std::max(a.top, b.top) + 1};
}

std::vector<Exponents> cut(Exponents whole, int count) {
  std::vector<Exponents> pieces;
  const int bits = (whole.top - whole.low + count - 1) / count;
  for (int low = whole.low; low < whole.top; low += bits)
    pieces.push_back({low, std::min(low + bits, whole.top)});
  return pieces;
}

bool pairs_fit(const std::vector<Exponents>& a, const std::vector<Exponents>& b, std::int64_t k) {
  return std::all_of(a.begin(), a.end(), [&](Exponents x) {
    return std::all_of(b.begin(), b.end(), [&](Exponents y) {
      return within(sum_of(product_range(x, y), k), kFloat64);
    });
  });
}

}  // namespace

ExactPlan plan_exact(Exponents a, Exponents b, Exponents c, std::int64_t k) {
  ExactPlan plan;
  const Exponents sum = sum_of(product_range(a, b), k), total = sum_of(sum, c);
  // Without any product that is not zero the result is C itself, however wide its range.
  const auto exact_in = [&](const Limits& host) {
    return representable(a, host) && representable(b, host) && (sum.empty() || within(total, host));
  };
  if (exact_in(kFloat32)) {
    plan.way = ExactPlan::Way::float32;
    return plan;
  }
  if (exact_in(kFloat64)) {
    plan.way = ExactPlan::Way::float64;
    return plan;
  }
  const bool combines = representable(a, kFloat64) && representable(b, kFloat64) && !sum.empty() &&
                        within(total, kCombined);
  if (!combines) return plan;
  for (int pairs = 1; pairs <= kMaxPieces * kMaxPieces; ++pairs) {
    for (int pieces = 1; pieces <= kMaxPieces; ++pieces) {
      if (pairs % pieces != 0 || pairs / pieces > kMaxPieces) continue;
      plan.a = cut(a, pieces);
      plan.b = cut(b, pairs / pieces);
      if (!pairs_fit(plan.a, plan.b, k)) continue;
      plan.way = ExactPlan::Way::split;
      plan.total = total;
      return plan;
    }
  }
  return plan;
}

double piece_of(const Value& value, Exponents piece) {
  __extension__ typedef unsigned __int128 Wide;
  Value part{.kind = Class::zero, .negative = value.negative};
  if (value.kind == Class::finite) {
    const int shift = value.exponent - piece.low, bits = piece.top - piece.low;
    Wide inside = 0;
    if (shift >= 0 && shift < bits) inside = Wide{value.significand} << shift;
    if (shift < 0 && shift > -64) inside = value.significand >> -shift;
    inside &= (Wide{1} << bits) - 1;
    if (inside != 0) {
      part.kind = Class::finite;
      part.exponent = piece.low;
      part.significand = static_cast<std::uint64_t>(inside);
    }
  }
  return value.kind == Class::nan || value.kind == Class::infinite ? 0.0 : to_double(part);
}

}  // namespace numemu::unit
