// Reads a description for the integer kernels, and proves where a step cannot saturate.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/integer/plan.hpp"

#include <algorithm>

#include "emu/unit/operand.hpp"

namespace numemu::unit {
namespace {

std::int64_t largest_magnitude(const Format& format) {
  return format.is_signed ? std::int64_t{1} << (format.bits - 1)
                          : (std::int64_t{1} << format.bits) - 1;
}

bool plain(const UnitDescription& unit) {
  const Register& r = unit.accumulator;
  return r.format == nullptr && r.bits >= 8 && r.bits <= 32;
}

/// The largest product, or nothing for operands that are not the core's.
std::optional<std::int64_t> largest_product(const UnitDescription& unit, const Format& a,
                                            const Format& b) {
  switch (unit.core) {
    case CoreKind::integer:
      if (a.kind != Kind::integer || b.kind != Kind::integer || a.bits > 16 || b.bits > 16)
        return std::nullopt;
      return largest_magnitude(a) * largest_magnitude(b);
    case CoreKind::xnor:
      if (a.kind != Kind::sign || b.kind != Kind::sign) return std::nullopt;
      return 1;
    case CoreKind::table: {
      if (a.bits > 8 || b.bits > 8 || !container_of(a) || !container_of(b) ||
          unit.products == nullptr || unit.products->size() != std::size_t{1} << (a.bits + b.bits))
        return std::nullopt;
      std::int64_t largest = 0;
      for (const std::int64_t product : *unit.products)
        largest = std::max(largest, product < 0 ? -product : product);
      return largest;
    }
    default:
      return std::nullopt;
  }
}

/// Padding an instruction adds zeros, but of signs and of a table whose entry of two zeros is not
/// zero it would add numbers.
bool padding_counts(const UnitDescription& unit, std::int64_t k) {
  const std::int64_t instruction = unit.k != 0 ? unit.k : unit.group;
  if (instruction == 0 || k % instruction == 0) return false;
  return unit.core == CoreKind::xnor ||
         (unit.core == CoreKind::table && unit.products->front() != 0);
}

}  // namespace

std::optional<IntegerPlan> plan_integer(const UnitDescription& unit, const Gemm& g) {
  if (!plain(unit)) return std::nullopt;
  const auto largest = largest_product(unit, *g.a.format, *g.b.format);
  if (!largest || padding_counts(unit, g.k)) return std::nullopt;
  IntegerPlan plan;
  plan.largest_product = *largest;
  plan.saturates = unit.accumulator.integer != IntegerOverflow::wrap;
  if (!plan.saturates) return plan;
  if (unit.accumulator.integer == IntegerOverflow::saturate_each) {
    plan.step = 1;
  } else if (unit.group != 0) {
    // The last step of an instruction may be shorter; ours all have the same size.
    if (unit.k % unit.group != 0) return std::nullopt;
    plan.step = unit.group;
  } else if (unit.k != 0) {
    plan.step = unit.k;
  }
  return plan;
}

bool sums_fit(const IntegerPlan& plan, std::int64_t k) {
  return k == 0 || plan.largest_product <= std::numeric_limits<std::int32_t>::max() / k;
}

bool clamps_once(const IntegerPlan& plan, int bits, std::int64_t k, std::int64_t largest_c) {
  if (k <= plan.step) return true;
  const std::int64_t most = (std::int64_t{1} << (bits - 1)) - 1;
  return plan.largest_product <= (most - std::min(largest_c, most)) / k;
}

}  // namespace numemu::unit
