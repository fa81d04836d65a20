// An addend in units of 2^(E - F) is below 2^(F + 2): a sum of G products and C is one of 64 bits
// where F and G are as small as in few_covers().
#include "emu/unit/fused/few_form.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "emu/unit/reference/register.hpp"

namespace numemu::unit {
namespace {

/// With more outputs a vector form is as fast.
constexpr std::int64_t kFewOutputs = 4;

bool few_covers(const FusedRule& rule) {
  return !rule.scaled && !rule.pairs_mod4 && !rule.c_at_end && rule.fraction_bits <= 40 &&
         rule.group <= 1 << 16;
}

/// A finite float32 number: significand 2^low.
struct FewFactor {
  explicit FewFactor(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const auto field = static_cast<int>(bits >> 23 & 0xff);
    significand = (bits & 0x7fffff) | (field == 0 ? 0u : 0x800000u);
    low = std::max(field, 1) - 127 - 23;
    negative = bits >> 31 != 0;
  }
  /// Of its leading bit, but not below `least`; of a zero `of_zero`.
  int exponent(int least, int of_zero) const {
    if (significand == 0) return of_zero;
    return std::max(low + static_cast<int>(std::bit_width(significand)) - 1, least);
  }
  std::uint32_t significand;
  int low;
  bool negative;
};

class FewForm {
 public:
  FewForm(const UnitDescription& unit, const Gemm& gemm, const FusedOperands& operands)
      : unit_(unit), gemm_(gemm), o_(operands), rule_(operands.rule) {}

  /// What the register holds at last; nothing where it overflowed.
  std::optional<Value> output(std::int64_t i, std::int64_t j) const {
    Value c;
    if (gemm_.c != nullptr)
      c = read_element(c_format(unit_), result_register(unit_), gemm_.c, i * gemm_.n + j);
    const float* a = o_.a.values.values + o_.a.values.row[i];
    const float* b = o_.b.values.values + o_.b.values.row[j];
    for (std::int64_t step = 0; step < rule_.steps(gemm_.k); ++step) {
      const std::int64_t begin = std::min(step * rule_.group, gemm_.k);
      c = round_to(unit_.accumulator, sum(a, b, begin, std::min(begin + rule_.group, gemm_.k), c));
      if (c.kind == Class::infinite || c.kind == Class::nan) return std::nullopt;
    }
    return c;
  }

 private:
  /// The exact sum of C and the products of a step, all cut below the largest exponent.
  Value sum(const float* a, const float* b, std::int64_t begin, std::int64_t end,
            const Value& c) const {
    constexpr int kNone = std::numeric_limits<int>::min();
    const std::int32_t *at_a = o_.a.values.depth, *at_b = o_.b.values.depth;
    int largest = rule_.floor.value_or(kNone);
    for (std::int64_t k = begin; k < end; ++k) {
      const FewFactor x(a[at_a[k]]), y(b[at_b[k]]);
      if (rule_.zeros_drop && (x.significand == 0 || y.significand == 0)) continue;
      largest = std::max(largest, x.exponent(o_.a.emin, rule_.zero_exponent) +
                                      y.exponent(o_.b.emin, rule_.zero_exponent));
    }
    // What pads the step is +0 times +0.
    if (!rule_.zeros_drop && end - begin < rule_.group)
      largest = std::max(largest, 2 * rule_.zero_exponent);
    if (c.kind == Class::finite) {
      largest = std::max({largest, leading_exponent(c), rule_.smallest});
    } else if (!rule_.zero_c_drops) {
      largest = std::max(largest, rule_.zero_exponent);
    }
    const int unit = (largest == kNone ? 0 : largest) - rule_.fraction_bits;
    auto whole = static_cast<std::int64_t>(cut(c, unit, RoundingMode::rtz));
    for (std::int64_t k = begin; k < end; ++k) {
      const FewFactor x(a[at_a[k]]), y(b[at_b[k]]);
      const std::uint64_t product = std::uint64_t{x.significand} * y.significand;
      if (product == 0) continue;
      const int shift = x.low + y.low - unit;
      const auto kept = static_cast<std::int64_t>(shift >= 0 ? product << shift
                                                             : product >> std::min(-shift, 63));
      whole += x.negative != y.negative ? -kept : kept;
    }
    return value_of_sum(whole, unit);
  }

  const UnitDescription& unit_;
  const Gemm& gemm_;
  const FusedOperands& o_;
  const FusedRule& rule_;
};

}  // namespace

bool multiply_fused_few(const UnitDescription& unit, const Gemm& gemm) {
  if (gemm.m * gemm.n > kFewOutputs) return false;
  const auto rule = fused_rule(unit);
  if (!rule || !few_covers(*rule)) return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands || operands->any_special()) return false;
  const FewForm form(unit, gemm, *operands);
  std::array<std::uint64_t, kFewOutputs> codes = {};
  std::size_t count = 0;
  const Format* const d = result_format(unit);
  for (std::int64_t i = 0; i < gemm.m; ++i) {
    for (std::int64_t j = 0; j < gemm.n; ++j) {
      const std::optional<Value> held = form.output(i, j);
      if (!held) return false;
      codes[count++] = code_of(d, result_register(unit), *held, unit.nan_code);
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    store_code(d, result_register(unit), codes[i], gemm.d, static_cast<std::int64_t>(i));
  return true;
}

}  // namespace numemu::unit
