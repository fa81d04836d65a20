// Checks that a fused description is one that fast paths cover, and what bounds its numbers.
#include "emu/unit/fused/prepare.hpp"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/fused/prepare_values.hpp"
#include "emu/unit/gather.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"
#include "formats/simd/decode.hpp"

namespace numemu::unit {
namespace {

/// Whether the format has infinities and subnormal numbers as in IEEE 754, and these sizes.
bool is_ieee(const Format*, int exponent_bits, int mantissa_bits, int bias);
inline bool is_float32(const Format* f) { return is_ieee(f, 8, 23, 127); }
inline bool is_float16(const Format* f) { return is_ieee(f, 5, 10, 15); }

/// Whether operands of the format can be read as float32, with the rounding of inputs that the unit
/// does.
bool reads_as_float32(const UnitDescription&, const Format& operand);

/// Throws Error where the gather does not fit the operand's shape.
FusedSide prepare_side(const UnitDescription&, const Operand&, std::int64_t rows,
                       std::int64_t depth);
/// Adds the exponents of the scales, rows x blocks codes; a NaN scale makes its row special.
void read_scales(FusedSide&, const Format& format, const std::uint8_t* codes, std::int64_t rows,
                 std::int64_t blocks);

constexpr std::uint32_t kInfinityBits = 0x7f800000;

/// Whether every finite number of `operand` is one of `wide`, which then rounds nothing.
bool holds(const Format& wide, const Format& operand) {
  const Exponents outer = exponents_of(wide), inner = exponents_of(operand);
  return operand.mantissa_bits <= wide.mantissa_bits && inner.low >= outer.low &&
         inner.top <= outer.top;
}

/// Masks the container bits that the unit does not read; nothing where it rounds in another way.
std::optional<std::uint32_t> input_mask(const UnitDescription& unit, const Format& operand) {
  int dropped = operand.container_shift;
  if (unit.input.format != nullptr && !holds(*unit.input.format, operand)) {
    if (unit.input.rounding.mode != RoundingMode::rtz ||
        container_of(*unit.input.format) != Container::floats ||
        container_of(operand) != Container::floats)
      return std::nullopt;
    dropped = std::max(dropped, unit.input.format->container_shift);
  }
  return ~std::uint32_t{0} << dropped;
}

/// Elements [first, first + count) of the unpadded source as float32.
void decode_run(const Operand& operand, std::uint32_t mask, std::int64_t first, std::int64_t count,
                float* values) {
  const Format& format = *operand.format;
  const auto* halves = static_cast<const std::uint16_t*>(operand.codes);
  if (container_of(format) == Container::bytes) {
    const auto* codes = static_cast<const std::uint8_t*>(operand.codes);
    simd::decode_bytes(decode_table(format), codes + first, count, values, false);
  } else if (is_float16(&format)) {
    float16_to_float32(halves + first, count, values);
  } else if (is_ieee(&format, 8, 7, 127)) {
    bfloat16_to_float32(halves + first, count, values);
  } else if (container_of(format) == Container::floats) {
    const auto* codes = static_cast<const float*>(operand.codes) + first;
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(codes[i]) & mask);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(double_or_nan(decode(format, code_at(operand, first + i))));
  }
}

/// An operand as float32, and what occurs in it.
struct ReadValues {
  Source<float> source;
  std::int64_t size = 0;  ///< of the padded source
  Survey found;
};

/// Decodes, pads and surveys part by part, while a part is in the cache: whole outer indices of a
/// padded source, else kPart elements.
ReadValues read_values(const Operand& operand, std::int64_t rows, std::int64_t depth,
                       std::uint32_t mask) {
  constexpr std::int64_t kPart = std::int64_t{1} << 14, kOfOneThread = std::int64_t{1} << 17;
  const Padding& padding = operand.gather->padding;
  const bool padded = !padding.identity();
  ReadValues read;
  const std::int64_t source = source_size(operand, rows, depth);
  read.size = padded ? padding.padded_size() : source;
  read.source = {nullptr, operand.gather->row.data(), operand.gather->depth.data(), nullptr};
  const bool in_place =
      container_of(*operand.format) == Container::floats && mask == ~std::uint32_t{0} && !padded;
  std::unique_ptr<float[]> storage;
  if (!in_place) storage = std::make_unique_for_overwrite<float[]>(read.size);
  float* const to = storage.get();
  const float* const values = in_place ? static_cast<const float*>(operand.codes) : to;
  const std::int64_t parts = padded ? padding.outer : (read.size + kPart - 1) / kPart;
  const std::int64_t part = padded ? read.size / std::max<std::int64_t>(parts, 1) : kPart;
  const auto read_part = [&](std::int64_t p) {
    const FloatGuard guard;
    const std::int64_t first = p * part, count = std::min(part, read.size - first);
    if (padded) {
      std::fill_n(to + first, count, 0.0f);
      for_each_padding_span(padding, p, [&](std::int64_t from, std::int64_t at, std::int64_t n) {
        decode_run(operand, mask, from, n, to + at);
      });
    } else if (!in_place) {
      decode_run(operand, mask, first, count, to + first);
    }
    return survey(values + first, count);
  };
  std::uint32_t least = read.found.least, most = read.found.most;
  const auto join = [](std::uint32_t& low, std::uint32_t& high, const Survey& found) {
    low = std::min(low, found.least);
    high = std::max(high, found.most);
  };
  // Even one thread costs a parallel region more than a short operand.
  if (read.size <= kOfOneThread || omp_in_parallel()) {
    for (std::int64_t p = 0; p < parts; ++p) join(least, most, read_part(p));
  } else {
#pragma omp parallel for reduction(min : least) reduction(max : most)
    for (std::int64_t p = 0; p < parts; ++p) join(least, most, read_part(p));
  }
  read.found = {least, most};
  read.source.values = values;
  read.source.storage = std::move(storage);
  return read;
}

/// Marks the rows that hold NaN or infinity, then replaces those by +0.
void take_out_specials(FusedSide& side, std::int64_t rows, std::int64_t depth, std::int64_t size) {
  const auto special = [&](std::int64_t i) { return !std::isfinite(side.values.values[i]); };
  side.special_rows.assign(static_cast<std::size_t>(rows), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int32_t* offsets = side.values.depth;
    side.special_rows[static_cast<std::size_t>(r)] = std::any_of(
        offsets, offsets + depth, [&](std::int32_t o) { return special(side.values.row[r] + o); });
  }
  auto finite = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) finite[i] = special(i) ? 0.0f : side.values.values[i];
  side.values.values = finite.get();
  side.values.storage = std::move(finite);
}

bool is_ieee(const Format* f, int exponent_bits, int mantissa_bits, int bias) {
  return f != nullptr && f->kind == Kind::floating && f->is_signed &&
         f->exponent_bits == exponent_bits && f->mantissa_bits == mantissa_bits &&
         f->bias == bias && f->specials == Specials::ieee && f->field_zero == FieldZero::subnormal;
}
bool reads_as_float32(const UnitDescription& unit, const Format& operand) {
  return container_of(operand) && operand.kind == Kind::floating && fits_float32(operand) &&
         exponents_of(operand).low >= -149 && input_mask(unit, operand);
}

FusedSide prepare_side(const UnitDescription& unit, const Operand& operand, std::int64_t rows,
                       std::int64_t depth) {
  FusedSide side;
  const std::uint32_t mask = *input_mask(unit, *operand.format);
  auto [source, size, found] = read_values(operand, rows, depth, mask);
  side.values = std::move(source);
  side.emin =
      smallest_normal_exponent(unit.input.format != nullptr ? *unit.input.format : *operand.format);
  // Of what is left of it: an input rounding shortens float32.
  side.mantissa_bits = std::min(operand.format->mantissa_bits, 23 - std::countr_zero(mask));
  if (found.most >= kInfinityBits) {
    take_out_specials(side, rows, depth, size);
    found = survey(side.values.values, size);
  }
  if (found.most == 0) return side;
  const auto exponent = [](std::uint32_t magnitude) {
    return std::max<int>(static_cast<int>(magnitude >> 23), 1) - 127;
  };
  side.lowest = std::max(exponent(found.least), side.emin);
  side.highest = std::max(exponent(found.most), side.emin);
  // The last bit is that of the number's own binade, but never below the format's.
  const int bit = exponent(found.least) - side.mantissa_bits;
  side.present = {std::max(bit, exponents_of(*operand.format).low), side.highest + 1};
  return side;
}

void read_scales(FusedSide& side, const Format& format, const std::uint8_t* codes,
                 std::int64_t rows, std::int64_t blocks) {
  side.blocks = blocks;
  side.scales.resize(static_cast<std::size_t>(rows * side.blocks));
  for (std::int64_t i = 0; i < rows * side.blocks; ++i) {
    const Value scale = decode(format, codes[i]);
    if (scale.kind == Class::finite) {
      side.scales[static_cast<std::size_t>(i)] =
          static_cast<std::int16_t>(scale.exponent + std::bit_width(scale.significand) - 1);
    } else {
      side.special_rows.resize(static_cast<std::size_t>(rows));
      side.special_rows[static_cast<std::size_t>(i / side.blocks)] = 1;
    }
  }
}

}  // namespace

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

namespace {

/// Lanes of the widest panel.
constexpr std::int64_t kFusedPanel = 32;
/// Below every exponent that can occur: what drops out, or a missing floor.
constexpr int kNever = -4000;
constexpr int kBaseOfDropping = 1024;
/// A step's largest exponent is usually some binades below the largest possible one.
constexpr int kUsuallyBelow = 4;

}  // namespace

FusedSteps fused_steps(const UnitDescription& unit, const FusedOperands& o) {
  const FusedRule& rule = o.rule;
  FusedSteps steps;
  steps.rule = rule;
  steps.base = rule.zeros_drop ? kBaseOfDropping : -rule.zero_exponent;
  // The register is a multiple of the lowest bit of all addends so far: C and products, cut or
  // rounded to coarser multiples.
  const bool c_joins = !rule.c_at_end && !o.c.empty();
  const bool products = !o.a.empty() && !o.b.empty();
  steps.lowest = c_joins ? (products ? std::min(o.c.low, o.lowest_bit) : o.c.low) : o.lowest_bit;
  // A register that saturates then holds the largest number, 2^top - 2^(top - 1 - kept bits).
  if (!o.bounded && !rule.to_infinity)
    steps.lowest = std::min(steps.lowest, rule.top - 1 - rule.kept_bits);
  const int uncut = steps.lowest + rule.fraction_bits;
  steps.least = std::max(rule.floor.value_or(kNever), uncut);
  steps.exponent_of_zero_c = rule.zero_c_drops ? kNever : rule.zero_exponent;
  steps.bounded = o.bounded;
  steps.plain_worthwhile = uncut + kUsuallyBelow >= o.highest_product;
  steps.nan_code = unit.nan_code;
  return steps;
}

void run_fused_tiles(const Gemm& gemm, const FusedOperands& o, const FusedSteps& steps,
                     const std::function<void(const FusedTile&)>& run) {
  const bool swap = lanes_are_a(gemm.m, gemm.n, kFusedPanel);
  FusedTile whole;
  whole.steps = &steps;
  whole.rows = swap ? &o.b : &o.a;
  whole.lanes = swap ? &o.a : &o.b;
  whole.row_stride = swap ? 1 : gemm.n;
  whole.lane_stride = swap ? gemm.n : 1;
  whole.k = gemm.k;
  whole.c = gemm.c;
  whole.d = gemm.d;
  const std::int64_t rows = swap ? gemm.n : gemm.m, lanes = swap ? gemm.m : gemm.n;
  for_each_tile(rows, lanes, gemm.k, {.granule = kFusedPanel}, [&](const Tile& tile) {
    FusedTile part = whole;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.lane_begin = tile.lane_begin;
    part.lane_end = tile.lane_end;
    const FloatGuard toward_zero(HostRounding::toward_zero);
    run(part);
  });
}

}  // namespace numemu::unit
