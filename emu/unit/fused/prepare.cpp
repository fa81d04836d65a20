// Checks that a fused description is one that fast paths cover, and what bounds its numbers.
#include "emu/unit/fused/prepare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/fused/prepare_side.hpp"
#include "emu/unit/fused/prepare_values.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"

namespace numemu::unit {
namespace {

constexpr int kZeroExponent = -126;  ///< of float32's smallest normal number

struct CSurvey {
  Exponents range;
  bool special = false;
};

CSurvey survey_c(const FusedRule& rule, const void* c, std::int64_t size) {
  if (c == nullptr) return {};
  const auto from_bits = [](Survey s, std::uint32_t infinity, int mantissa_bits, int bias) {
    CSurvey found;
    found.special = s.most >= infinity;
    if (s.most == 0) return found;
    const auto exponent = [&](std::uint32_t m) {
      return std::max(static_cast<int>(m >> mantissa_bits), 1) - bias;
    };
    found.range = {exponent(s.least) - mantissa_bits, exponent(std::min(s.most, infinity - 1)) + 1};
    return found;
  };
  if (!rule.half) return from_bits(survey(static_cast<const float*>(c), size), 0x7f800000, 23, 127);
  Survey s;
  const auto* codes = static_cast<const std::uint16_t*>(c);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint32_t magnitude = codes[i] & 0x7fffu;
    s.most = std::max(s.most, magnitude);
    s.least = std::min(s.least, magnitude - 1);
  }
  if (s.most != 0) ++s.least;
  return from_bits(s, 0x7c00, 10, 15);
}

/// An upper bound of the Euclidean norms of the rows.
double largest_norm(const FusedSide& side, std::int64_t rows, std::int64_t depth) {
  double most = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = side.values.values + side.values.row[r];
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      const double x = row[side.values.depth[k]];
      sum += x * x;
    }
    most = std::max(most, sum);
  }
  return std::sqrt(most);
}

void measure(FusedOperands& o, const Gemm& gemm) {
  const FusedRule& rule = o.rule;
  const auto range = [](const FusedSide& s) {
    const auto [least, most] = std::minmax_element(s.scales.begin(), s.scales.end());
    return s.scales.empty() ? std::pair(0, 0) : std::pair<int, int>(*least, *most);
  };
  const auto [a_least, a_most] = range(o.a);
  const auto [b_least, b_most] = range(o.b);
  const int least_scale = a_least + b_least, most_scale = a_most + b_most;
  const bool none = o.a.empty() || o.b.empty();
  o.highest_product = none ? kZeroExponent : o.a.highest + o.b.highest + most_scale;
  o.lowest_bit = none ? 0 : o.a.present.low + o.b.present.low + least_scale;

  int zero = rule.zero_exponent;
  if (!o.a.empty()) zero = std::max(zero, o.a.highest);
  if (!o.b.empty()) zero = std::max(zero, o.b.highest);
  zero += rule.zero_exponent;  // the largest exponent of a zero product, without scales
  const int lowest = o.a.lowest + o.b.lowest;
  const int multiple = o.c.empty() ? o.lowest_bit : std::min(o.c.low, o.lowest_bit);
  o.zeros_never_count =
      rule.zeros_drop ||
      ((none || (zero <= lowest && rule.zero_exponent <= lowest + least_scale)) &&
       (multiple >= zero + most_scale - rule.fraction_bits || (none && o.c.empty())));

  // Sums grow by at most the products' magnitudes (cuts and roundings toward zero shrink them);
  // each rounding to nearest adds at most half of the last bit kept: 2^-11 of a float16 register's
  // own, or 2^-25.
  const double roundings = 2 * static_cast<double>(rule.steps(gemm.k)) + 1;
  const double end = std::ldexp(1.0, rule.top - 1);
  const double limit =
      rule.nearest ? portable::exp(-roundings * std::ldexp(1.0, -rule.kept_bits - 1)) * end -
                         roundings * std::ldexp(1.0, rule.smallest - rule.kept_bits - 1)
                   : 0.999 * end;
  const double c = o.c.empty() ? 0 : std::ldexp(1.0, o.c.top);
  const double scale = std::ldexp(1.0, most_scale);
  const double products = none ? 0
                               : static_cast<double>(gemm.k) * scale *
                                     std::ldexp(1.0, o.a.present.top + o.b.present.top);
  const bool shrinks = rule.alignment == RoundingMode::rtz;
  o.bounded = shrinks && c + products < limit;
  // Cauchy and Schwarz, when the simple bound is not enough; the host's own roundings are far below
  // the margin of a tenth.
  if (shrinks && !o.bounded && c < limit && !none)
    o.bounded =
        c + 1.1 * scale * largest_norm(o.a, gemm.m, gemm.k) * largest_norm(o.b, gemm.n, gemm.k) <
        limit;
}

/// Whether a form can hold this register: IEEE-like, its normal numbers float32's, rounded to
/// nearest even or toward zero.
bool read_register(const Register& r, FusedRule& rule) {
  const Format* const f = r.format;
  if (f == nullptr || !is_ieee(f, f->exponent_bits, f->mantissa_bits, f->bias)) return false;
  constexpr int kMostKept = 23;
  rule.nearest = r.rounding.mode == RoundingMode::rne;
  rule.kept_bits = f->mantissa_bits;
  rule.smallest = 1 - f->bias;
  rule.top = (1 << f->exponent_bits) - 1 - f->bias;
  rule.to_infinity = rule.nearest || r.overflow_to_infinity;
  return (rule.nearest || r.rounding.mode == RoundingMode::rtz) && rule.kept_bits >= 1 &&
         rule.kept_bits <= kMostKept && rule.smallest >= kZeroExponent && rule.top <= 128 &&
         rule.smallest < rule.top;
}

}  // namespace

std::optional<FusedRule> fused_rule(const UnitDescription& unit) {
  const Register& r = unit.accumulator;
  const Alignment& alignment = unit.alignment;
  FusedRule rule;
  rule.instruction = unit.k != 0 ? unit.k : unit.group;
  rule.group = unit.group != 0 ? unit.group : unit.k;
  rule.fraction_bits = alignment.fraction_bits;
  rule.alignment = alignment.rounding;
  rule.pairs_mod4 = unit.order == StepOrder::pairs_mod4;
  rule.c_at_end = unit.c_entry == CEntry::after_rounding;
  rule.zeros_drop = !alignment.zero_exponent;
  rule.zero_exponent = alignment.zero_exponent.value_or(kZeroExponent);
  rule.zero_c_drops = rule.zeros_drop || !alignment.zero_c_counts;
  rule.floor = alignment.floor;
  rule.scaled = unit.scaling.point == Scaling::Point::exponents;

  const Format *const c = c_format(unit), *const d = result_format(unit);
  const bool register_known =
      read_register(r, rule) && (is_float16(c) == is_float16(d)) &&
      (is_float16(c) ? is_float16(r.format) && rule.nearest : is_float32(c) && is_float32(d));
  rule.half = register_known && is_float16(c);
  // A step of whole pairs has the same products whichever of a pair is first.
  const bool pairs = rule.group % 2 == 0;
  const bool order_known =
      unit.order == StepOrder::ascending || (unit.order == StepOrder::odd_first && pairs) ||
      (rule.pairs_mod4 && pairs && unit.k % 4 == 0 && unit.k % (2 * rule.group) == 0);
  const bool c_known = unit.c_entry == CEntry::in_alignment || (rule.c_at_end && unit.k != 0);
  const bool scale_known =
      unit.scaling.point == Scaling::Point::none ||
      (rule.scaled && unit.scaling.block == rule.group && !rule.pairs_mod4 &&
       unit.scaling.format != nullptr && unit.scaling.format->field_zero == FieldZero::scale);
  // An all-zero step, which padding can add, may then not raise the largest exponent above that of
  // any C.
  const int least_of_c = rule.half ? rule.smallest : kZeroExponent;
  const bool padding_harmless =
      rule.zero_exponent <= kZeroExponent && rule.floor.value_or(kZeroExponent) <= least_of_c;
  if (unit.core != CoreKind::fused || !register_known || !order_known || !c_known || !scale_known ||
      !padding_harmless || rule.group < 1 || rule.instruction % rule.group != 0)
    return std::nullopt;
  return rule;
}

std::optional<FusedOperands> prepare_fused(const UnitDescription& unit, const Gemm& gemm) {
  const auto rule = fused_rule(unit);
  if (!rule || gemm.k == 0 || gemm.m == 0 || gemm.n == 0 ||
      !reads_as_float32(unit, *gemm.a.format) || !reads_as_float32(unit, *gemm.b.format))
    return std::nullopt;
  const FloatGuard guard;
  const auto side = [&](const Operand& operand, std::int64_t rows, const std::uint8_t* scales) {
    return prepared<FusedSide>(operand, [&](const Operand& read) {
      FusedSide made = prepare_side(unit, read, rows, gemm.k);
      const std::int64_t blocks = (gemm.k + rule->group - 1) / rule->group;
      if (rule->scaled) read_scales(made, *unit.scaling.format, scales, rows, blocks);
      return made;
    });
  };
  FusedOperands o(*rule, side(gemm.a, gemm.m, gemm.scale_a), side(gemm.b, gemm.n, gemm.scale_b));
  const CSurvey c = survey_c(*rule, gemm.c, gemm.m * gemm.n);
  o.c = c.range;
  o.special_c = c.special;
  measure(o, gemm);
  return o;
}

namespace {

/// C or D of the register's container.
struct SignElements {
  bool half;
  bool finite(const void* array, std::int64_t i) const {
    if (half) return (static_cast<const std::uint16_t*>(array)[i] & 0x7c00) != 0x7c00;
    return std::isfinite(static_cast<const float*>(array)[i]);
  }
  float as_float(const void* array, std::int64_t i) const {
    if (!half) return static_cast<const float*>(array)[i];
    const std::uint32_t code = static_cast<const std::uint16_t*>(array)[i];
    return std::bit_cast<float>((code & 0x8000) << 16 | (code & 0x7c00) << 13 | 0x70000000 |
                                (code & 0x3ff) << 13);
  }
  void store(void* array, std::int64_t i, std::uint64_t code) const {
    if (half) {
      static_cast<std::uint16_t*>(array)[i] = static_cast<std::uint16_t>(code);
    } else {
      static_cast<float*>(array)[i] = std::bit_cast<float>(static_cast<std::uint32_t>(code));
    }
  }
  std::uint64_t infinity(bool negative) const {
    return half ? (negative ? 0xfc00 : 0x7c00) : (negative ? 0xff800000 : 0x7f800000);
  }
};

/// An operand's signs: 0, +-1 for finite numbers, infinity and NaN as they are.
Source<float> signs_of(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  return decode_source<float>(operand, rows, depth, [](const Value& v) {
    if (v.kind == Class::zero) return 0.0f;
    if (v.kind == Class::nan) return NAN;
    return std::copysign(v.kind == Class::infinite ? INFINITY : 1.0f, v.negative ? -1.0f : 1.0f);
  });
}

/// Sums of products of signs plus C where it is not finite: NaN and infinity exactly where the unit
/// has them too, since those do not depend on the order of a sum; all other sums are at most K.
std::vector<float> multiply_signs(const Gemm& gemm, const SignElements& elements) {
  const Source<float> a = signs_of(gemm.a, gemm.m, gemm.k), b = signs_of(gemm.b, gemm.n, gemm.k);
  std::vector<float> c(static_cast<std::size_t>(gemm.m * gemm.n)), d(c.size());
  if (gemm.c != nullptr) {
    for (std::int64_t i = 0; i < gemm.m * gemm.n; ++i) {
      if (!elements.finite(gemm.c, i))
        c[static_cast<std::size_t>(i)] = elements.as_float(gemm.c, i);
    }
  }
  run_chain(Chain<float, float>{gemm.m,
                                gemm.n,
                                gemm.k,
                                {a.values, a.row, a.depth},
                                {b.values, b.row, b.depth},
                                c.data(),
                                d.data()});
  return d;
}

/// Below this many products the reference is quicker than another product of matrices.
constexpr std::int64_t kFewProducts = 20'000;

}  // namespace

void finish_fused(const UnitDescription& unit, const Gemm& gemm, const FusedOperands& o) {
  if (!o.any_special()) return;
  const auto marked = [](const std::vector<std::uint8_t>& rows, std::int64_t r) {
    return !rows.empty() && rows[static_cast<std::size_t>(r)] != 0;
  };
  const SignElements elements{o.rule.half};
  const auto affected = [&](std::int64_t i, std::int64_t j) {
    return marked(o.a.special_rows, i) || marked(o.b.special_rows, j) ||
           (o.special_c && !elements.finite(gemm.c, i * gemm.n + j));
  };
  std::int64_t outputs = 0;
  for (std::int64_t i = 0; i < gemm.m; ++i) {
    for (std::int64_t j = 0; j < gemm.n; ++j) outputs += affected(i, j);
  }
  // NaN scales are not elements of A or B.
  const bool few = o.rule.scaled || outputs * gemm.k <= kFewProducts;
  std::vector<float> signs;
  if (!few) signs = multiply_signs(gemm, elements);
  const ReferenceDot reference(unit, gemm);
  for_each_tile(gemm.m, gemm.n, few ? gemm.k : 1, kReferenceTile, [&](const Tile& tile) {
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
      for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) {
        if (!affected(i, j)) continue;
        const std::int64_t index = i * gemm.n + j;
        // A finite sum that overflowed may have met the infinity before or after.
        if (few || !elements.finite(gemm.d, index)) {
          reference.write(i, j);
          continue;
        }
        const float sign = signs[static_cast<std::size_t>(index)];
        if (std::isfinite(sign)) continue;
        elements.store(gemm.d, index,
                       std::isnan(sign) ? unit.nan_code : elements.infinity(sign < 0));
      }
    }
  });
}

}  // namespace numemu::unit
