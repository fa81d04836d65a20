// The loops of a fused tile: packs some steps at a time, runs them block by block, stores the
// registers; once per Highway target.
#if defined(NUMEMU_FUSED_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_FUSED_LOOP_INL
#undef NUMEMU_FUSED_LOOP_INL
#else
#define NUMEMU_FUSED_LOOP_INL
#endif

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/fused/prepare_values.hpp"
#include "formats/float_guard.hpp"

#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The larger of `largest` and the exponent with which registers take part in the alignment, both
/// biased by 127. `largest` is at least steps.least.
template <class D, class DI = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DI> IncludeC(D d, hn::Vec<DI> largest, hn::Vec<D> c, const FusedSteps& steps) {
  constexpr int kBias = 127, kSmallest = -126;
  const DI di;
  (void)d;
  const auto magnitude = hn::BitCast(di, hn::Abs(c));
  const auto field = hn::ShiftRight<23>(magnitude);
  // Zero and subnormal numbers have field 0, less than `largest`.
  if (steps.rule.smallest == kSmallest && steps.least >= kSmallest) return hn::Max(largest, field);
  const auto exponent =
      hn::IfThenElse(hn::Eq(magnitude, hn::Zero(di)), hn::Set(di, steps.exponent_of_zero_c + kBias),
                     hn::Max(field, hn::Set(di, steps.rule.smallest + kBias)));
  return hn::Max(largest, exponent);
}

/// Cuts a float32 register to its fraction bits, toward zero.
template <class D>
HWY_INLINE hn::Vec<D> KeepBits(D d, hn::Vec<D> x, int kept_bits) {
  const hn::RebindToUnsigned<D> words;
  const auto mask = hn::Set(words, ~std::uint32_t{0} << (23 - kept_bits));
  return hn::BitCast(d, hn::And(hn::BitCast(words, x), mask));
}

/// x rounded to float16, to nearest even, as a T (float or double); beyond 65504 infinity. Needs x
/// to be a multiple of 2^-38 for float, of 2^-66 for double, whatever the host rounds to: below
/// 2^-14, adding 2^-14 moves the last bit of a float16 to where it is in [2^-14, 2^-13), exactly.
template <class D>
HWY_INLINE hn::Vec<D> RoundToHalf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  constexpr bool kSingle = std::is_same_v<T, float>;
  constexpr int kShift = kSingle ? 13 : 42;
  const hn::RebindToUnsigned<D> words;
  using Word = hn::TFromD<decltype(words)>;
  const auto smallest = hn::Set(d, static_cast<T>(0x1p-14));
  const auto magnitude = hn::Abs(x);
  const auto tiny = hn::Lt(magnitude, smallest);
  const auto lift = hn::IfThenElseZero(tiny, smallest);
  const auto bits = hn::BitCast(words, hn::Add(magnitude, lift));
  const auto odd = hn::And(hn::ShiftRight<kShift>(bits), hn::Set(words, Word{1}));
  const auto below_half = hn::Set(words, (Word{1} << (kShift - 1)) - 1);
  const auto rounded =
      hn::And(hn::Add(hn::Add(bits, below_half), odd), hn::Set(words, ~((Word{1} << kShift) - 1)));
  auto value = hn::Sub(hn::BitCast(d, rounded), lift);
  value = hn::IfThenElse(hn::Ge(value, hn::Set(d, static_cast<T>(65536))), hn::Inf(d), value);
  return hn::CopySignToAbs(hn::IfThenElse(hn::IsNaN(x), x, value), x);
}

/// Doubles rounded to the register as by RoundToHalf() with the numbers of the rule. The host must
/// round toward zero: bits that the lift cuts off are remembered in the last one kept, 29 places
/// below the register's or more.
template <class D>
HWY_INLINE hn::Vec<D> RoundToRegister(D d, hn::Vec<D> x, const FusedRule& rule) {
  using Word = std::uint64_t;
  const hn::RebindToUnsigned<D> words;
  const auto power = [](int exponent) {
    return std::bit_cast<double>(static_cast<Word>(1023 + exponent) << 52);
  };
  const int shift = 52 - rule.kept_bits;
  const Word last = Word{1} << shift;
  const auto smallest = hn::Set(d, power(rule.smallest));
  const auto magnitude = hn::Abs(x);
  const auto lift = hn::IfThenElseZero(hn::Lt(magnitude, smallest), smallest);
  const auto lifted = hn::Add(magnitude, lift);
  const auto cut = hn::Ne(hn::Sub(lifted, lift), magnitude);
  auto bits = hn::Or(hn::BitCast(words, lifted),
                     hn::IfThenElseZero(hn::RebindMask(words, cut), hn::Set(words, Word{1})));
  if (rule.nearest) {
    const auto odd = hn::And(hn::ShiftRightSame(bits, shift), hn::Set(words, Word{1}));
    bits = hn::Add(hn::Add(bits, hn::Set(words, last / 2 - 1)), odd);
  }
  bits = hn::And(bits, hn::Set(words, ~(last - 1)));
  auto value = hn::Sub(hn::BitCast(d, bits), lift);
  const double largest = power(rule.top) - power(rule.top - 1 - rule.kept_bits);
  const auto beyond = hn::Ge(value, hn::Set(d, power(rule.top)));
  value = hn::IfThenElse(beyond, rule.to_infinity ? hn::Inf(d) : hn::Set(d, largest), value);
  return hn::CopySignToAbs(hn::IfThenElse(hn::IsNaN(x), x, value), x);
}

/// Codes of floats that are float16 numbers, infinities or NaN.
inline void HalfCodes(const float* values, std::int64_t count, std::uint16_t nan,
                      std::uint16_t* codes) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint16_t, decltype(d)> d_short;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    const auto x = hn::Load(d, values + i);
    const auto magnitude = hn::Abs(x);
    const auto sign =
        hn::ShiftRight<16>(hn::And(hn::BitCast(hn::RebindToUnsigned<decltype(d)>(), x),
                                   hn::Set(hn::RebindToUnsigned<decltype(d)>(), 0x80000000u)));
    const auto normal =
        hn::Sub(hn::ShiftRight<13>(hn::BitCast(di, magnitude)), hn::Set(di, (127 - 15) << 10));
    const auto subnormal = hn::ConvertTo(di, hn::Mul(magnitude, hn::Set(d, 0x1p24f)));
    const auto finite = hn::IfThenElse(hn::RebindMask(di, hn::Lt(magnitude, hn::Set(d, 0x1p-14f))),
                                       subnormal, normal);
    // Infinity is beyond the largest code.
    auto code = hn::Or(hn::Min(finite, hn::Set(di, 0x7c00)), hn::BitCast(di, sign));
    code = hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(x)), hn::Set(di, int{nan}), code);
    hn::Store(hn::DemoteTo(d_short, code), d_short, codes + i);
  }
}

/// Replaces NaN by the unit's.
inline void PutNan(float* values, std::int64_t count, std::uint32_t nan) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto canonical = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), nan));
  for (std::int64_t i = 0; i < count; i += step) {
    const auto x = hn::Load(d, values + i);
    hn::Store(hn::IfThenElse(hn::IsNaN(x), canonical, x), d, values + i);
  }
}

/// One panel of lanes: a vector of 16-bit exponents, two of float32, four of float64.
inline std::int64_t PanelLanes() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<std::int16_t>()));
}

/// Rows packed side by side: a multiple of every register block's rows and of the 4 rows that are
/// transposed at a time.
constexpr std::int64_t kRowPanel = 24;

/// Some steps of one side: depth [k, k + depth) of rows [first, first + count) of the operand.
struct PanelSlice {
  const FusedSide& side;
  std::int64_t first, count, width;
  std::int64_t k, present, depth;  ///< present: of these depths before K; the others are +0
  const Run* runs;
  std::int64_t run_count;
};

/// values[k * width + i], +0 beyond K and beyond `count`.
inline void PackValues(const PanelSlice& p, float* values) {
  const ChainSide<float> side{p.side.values.values, p.side.values.row, p.side.values.depth};
  Pack<float>(
      {side, p.first, p.count, p.width, p.side.values.depth + p.k, p.present, p.runs, p.run_count},
      values);
  std::fill(values + p.present * p.width, values + p.depth * p.width, 0.0f);
}

/// e + bias of a vector of values, `bias` - base for zeros.
template <class D, class V = hn::Vec<D>, class DI = hn::RebindToSigned<D>>
HWY_INLINE hn::Vec<DI> StoredExponents(D d, V values, const FusedSide& side, int base, int bias) {
  constexpr int kBias = 127;
  const DI di;
  (void)d;
  const auto magnitude = hn::BitCast(di, hn::Abs(values));
  // Field 0, a subnormal float32, counts as 1; emin is never lower.
  const auto field =
      hn::Max(hn::ShiftRight<23>(magnitude), hn::Set(di, std::max(side.emin + kBias, 1)));
  const auto zero = hn::Eq(magnitude, hn::Zero(di));
  return hn::Add(hn::IfThenElse(zero, hn::Set(di, kBias - base), field), hn::Set(di, bias - kBias));
}

/// Calls visit(k, i, scale) for every packed element that has a scale, with its exponent.
template <class Visit>
HWY_INLINE void ForEachScaled(const PanelSlice& p, int group, const Visit& visit) {
  if (p.side.scales.empty()) return;
  const std::int64_t first_block = p.k / group, blocks = p.side.blocks;
  for (std::int64_t k = 0; k < p.present; k += group) {
    const std::int16_t* scales = p.side.scales.data() + p.first * blocks + first_block + k / group;
    for (std::int64_t i = 0; i < p.count; ++i) {
      const int scale = scales[i * blocks];
      if (scale == 0) continue;
      for (std::int64_t depth = k; depth < k + group; ++depth) visit(depth, i, scale);
    }
  }
}

/// Exponents of lanes: one int16 each, scales added.
inline void PackLaneExponents(const PanelSlice& p, const FusedSteps& steps, const float* values,
                              std::int16_t* exponents) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int16_t, decltype(d)> d_short;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < p.depth * p.width; i += step) {
    const auto stored = StoredExponents(d, hn::Load(d, values + i), p.side, steps.base, steps.base);
    hn::Store(hn::DemoteTo(d_short, stored), d_short, exponents + i);
  }
  ForEachScaled(p, steps.rule.group, [&](std::int64_t k, std::int64_t i, int scale) {
    std::int16_t& exponent = exponents[k * p.width + i];
    exponent = static_cast<std::int16_t>(exponent + scale);
  });
}

/// Exponents of rows: each twice in 32 bits, so that a broadcast of 32 bits fills a vector (one of
/// 16 bits costs a shuffle more).
inline void PackRowExponents(const PanelSlice& p, const FusedSteps& steps, const float* values,
                             std::int32_t* exponents) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d_int;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto low_half = hn::Set(d_int, 0xffff);
  const std::int64_t size = p.depth * p.width;
  for (std::int64_t i = 0; i < size; i += step) {
    // The last vector may reach beyond the panel, where there is room for it.
    auto stored =
        StoredExponents(d, hn::LoadU(d, values + i), p.side, steps.base, 127 - steps.base);
    hn::StoreU(hn::Or(hn::And(stored, low_half), hn::ShiftLeft<16>(stored)), d_int, exponents + i);
  }
  ForEachScaled(p, steps.rule.group, [&](std::int64_t k, std::int64_t i, int scale) {
    std::int32_t& pair = exponents[k * p.width + i];
    const int sum = static_cast<std::int16_t>(pair) + scale;
    pair = (sum & 0xffff) | static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) << 16);
  });
}

/// Where the factors of a step lie: `runs` runs of `run` depths, `skip` depths apart.
struct StepDepths {
  std::int64_t run, runs, skip;
  explicit StepDepths(const FusedRule& rule)
      : run(rule.pairs_mod4 ? 2 : rule.group),
        runs(rule.pairs_mod4 ? rule.group / 2 : 1),
        skip(rule.pairs_mod4 ? 2 : 0) {}
};

/// Depth of a step's first product, from the first depth of a slice of whole instructions.
inline std::int64_t FirstDepth(const FusedRule& rule, std::int64_t step) {
  if (!rule.pairs_mod4) return step * rule.group;
  const std::int64_t each = rule.instruction / rule.group, in_half = each / 2, at = step % each;
  return step / each * rule.instruction + at % in_half * 2 * rule.group + at / in_half * 2;
}

/// The largest exponent of each output's products in a step, at least the given one, biased by 127;
/// recursion keeps every vector in a register.
template <int kRows>
struct LargestExponents {
  using D = hn::ScalableTag<std::int16_t>;
  hn::Vec<D> row;
  LargestExponents<kRows - 1> rest;

  HWY_INLINE void Start(hn::Vec<D> least) {
    row = least;
    rest.Start(least);
  }
  HWY_INLINE void Include(const std::int32_t* rows, hn::Vec<D> lanes) {
    const D d;
    const hn::Repartition<std::int32_t, D> pairs;
    row = hn::Max(row, hn::Add(lanes, hn::BitCast(d, hn::Set(pairs, *rows))));
    rest.Include(rows + 1, lanes);
  }
  HWY_INLINE void Find(const StepDepths& depths, int least, const std::int32_t* rows,
                       const std::int16_t* lanes) {
    constexpr int kBias = 127;
    const D d;
    Start(hn::Set(d, static_cast<std::int16_t>(least + kBias)));
    const std::size_t width = hn::Lanes(d);
    for (std::int64_t c = 0; c < depths.runs; ++c) {
      for (std::int64_t q = 0; q < depths.run; ++q) {
        Include(rows, hn::Load(d, lanes));
        rows += kRowPanel;
        lanes += width;
      }
      rows += depths.skip * kRowPanel;
      lanes += depths.skip * static_cast<std::int64_t>(width);
    }
  }
  /// Of the first and of the second half of the lanes, in 32 bits.
  HWY_INLINE auto Low() const {
    return hn::PromoteTo(hn::ScalableTag<std::int32_t>(), hn::LowerHalf(hn::Half<D>(), row));
  }
  HWY_INLINE auto High() const {
    return hn::PromoteTo(hn::ScalableTag<std::int32_t>(), hn::UpperHalf(hn::Half<D>(), row));
  }
};
template <>
struct LargestExponents<0> {
  HWY_INLINE void Start(hn::Vec<hn::ScalableTag<std::int16_t>>) {}
  HWY_INLINE void Include(const std::int32_t*, hn::Vec<hn::ScalableTag<std::int16_t>>) {}
};

/// What a register block reads and writes: rows and lanes of one slice.
template <class T>
struct Block {
  const FusedSteps& steps;
  const T* rows;                       ///< [k][kRowPanel]
  const std::int32_t* row_exponents;   ///< the same
  const T* lanes;                      ///< [k][kCopies * PanelLanes()]
  const std::int16_t* lane_exponents;  ///< [k][PanelLanes()]
  float* sums;                         ///< registers, [row][PanelLanes()]
  std::int64_t first_step, step_count;
};

/// c += sums under rounding to nearest, which the caller must have set.
HWY_NOINLINE inline void AddNearest(const FusedRule& rule, const float* sums, std::int64_t count,
                                    float* c) {
  const hn::ScalableTag<float> d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    // Two float16 numbers of 11 bits survive the rounding to float32 on the way: 24 >= 2 * 11 + 2.
    auto sum = hn::Add(hn::Load(d, c + i), hn::Load(d, sums + i));
    if (rule.half) sum = RoundToHalf(d, sum);
    hn::Store(sum, d, c + i);
  }
}

/// Adds into any register, to nearest even; the host must round toward zero. The sum of two
/// float32 numbers is a float64 where their exponents differ by less than 29. Elsewhere it is cut,
/// which the subtraction of the larger one shows without rounding; the last bit then remembers it.
HWY_NOINLINE inline void AddToRegister(const FusedRule& rule, const float* sums, std::int64_t count,
                                       float* c) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> d_float;
  const hn::RebindToUnsigned<decltype(d)> words;
  FusedRule nearest = rule;
  nearest.nearest = nearest.to_infinity = true;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += step) {
    const auto x = hn::PromoteTo(d, hn::LoadU(d_float, c + i));
    const auto y = hn::PromoteTo(d, hn::LoadU(d_float, sums + i));
    const auto x_larger = hn::Ge(hn::Abs(x), hn::Abs(y));
    const auto large = hn::IfThenElse(x_larger, x, y), small = hn::IfThenElse(x_larger, y, x);
    const auto sum = hn::Add(large, small);
    const auto cut = hn::Ne(hn::Sub(sum, large), small);
    const auto odd = hn::BitCast(
        d, hn::Or(hn::BitCast(words, sum), hn::IfThenElseZero(hn::RebindMask(words, cut),
                                                              hn::Set(words, std::uint64_t{1}))));
    // Infinite sums and NaN have no last bit to set.
    const auto finite = hn::Lt(hn::Abs(sum), hn::Inf(d));
    const auto rounded = RoundToRegister(d, hn::IfThenElse(finite, odd, sum), nearest);
    hn::StoreU(hn::DemoteTo(d_float, rounded), d_float, c + i);
  }
}

/// C and the last sum of an instruction whose C enters at the end. The compiler may move arithmetic
/// across the guard, but not a call.
HWY_NOINLINE inline void AddToC(const FusedRule& rule, const float* sums, std::int64_t count,
                                float* c) {
  if (!rule.half && !rule.float32_register()) return AddToRegister(rule, sums, count, c);
  const FloatGuard nearest;
  AddNearest(rule, sums, count, c);
}

/// Runs all steps of the slice on rows [row, row + R) of a panel.
template <class Form, int kRows, class T>
void RunRows(std::int64_t rows, const Block<T>& block) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return RunRows<Form, kRows - 1>(rows, block);
  }
  const FusedRule& rule = block.steps.rule;
  if (!rule.c_at_end) return Form::template Multiply<kRows>(block);
  const std::int64_t size = kRows * PanelLanes(), each = rule.instruction / rule.group;
  HWY_ALIGN float sums[kRows * hn::MaxLanes(hn::ScalableTag<std::int16_t>())];
  Block<T> instruction = block;
  instruction.sums = sums;
  instruction.step_count = each;
  for (std::int64_t s = 0; s < block.step_count; s += each) {
    std::fill_n(sums, size, 0.0f);
    instruction.first_step = block.first_step + s;
    Form::template Multiply<kRows>(instruction);
    AddToC(rule, sums, size, block.sums);
  }
}

/// The registers of a panel at the beginning: C, +0 where it is not finite or missing.
inline void BeginPanel(const FusedTile& t, std::int64_t row, std::int64_t rows, std::int64_t lane,
                       std::int64_t lanes, float* sums) {
  const std::int64_t width = PanelLanes();
  std::fill_n(sums, kRowPanel * width, 0.0f);
  if (t.c == nullptr) return;
  HWY_ALIGN std::uint16_t codes[hn::MaxLanes(hn::ScalableTag<std::int16_t>())];
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t first = (row + i) * t.row_stride + lane * t.lane_stride;
    float* to = sums + i * width;
    if (t.steps->rule.half) {
      const auto* c = static_cast<const std::uint16_t*>(t.c);
      for (std::int64_t j = 0; j < lanes; ++j) codes[j] = c[first + j * t.lane_stride];
      float16_to_float32(codes, lanes, to);
    } else {
      const auto* c = static_cast<const float*>(t.c);
      for (std::int64_t j = 0; j < lanes; ++j) to[j] = c[first + j * t.lane_stride];
    }
    for (std::int64_t j = 0; j < lanes; ++j) to[j] = std::isfinite(to[j]) ? to[j] : 0.0f;
  }
}

/// D from the registers of a panel.
inline void EndPanel(const FusedTile& t, std::int64_t row, std::int64_t rows, std::int64_t lane,
                     std::int64_t lanes, float* sums) {
  const std::int64_t width = PanelLanes(), first = row * t.row_stride + lane * t.lane_stride;
  if (t.steps->rule.half) {
    HWY_ALIGN std::uint16_t codes[hn::MaxLanes(hn::ScalableTag<std::int16_t>())];
    auto* d = static_cast<std::uint16_t*>(t.d) + first;
    for (std::int64_t i = 0; i < rows; ++i) {
      HalfCodes(sums + i * width, width, static_cast<std::uint16_t>(t.steps->nan_code), codes);
      for (std::int64_t j = 0; j < lanes; ++j) d[i * t.row_stride + j * t.lane_stride] = codes[j];
    }
    return;
  }
  auto* d = static_cast<float*>(t.d) + first;
  PutNan(sums, rows * width, static_cast<std::uint32_t>(t.steps->nan_code));
  if (t.lane_stride == 1) {
    for (std::int64_t i = 0; i < rows; ++i) CopyRun(sums + i * width, d + i * t.row_stride, lanes);
  } else {
    StoreTransposed(sums, width, rows, lanes, d, t.lane_stride);
  }
}

/// Where floats are packed: at once where the form reads them, else in a buffer.
template <class Form>
float* Place(typename Form::Value* packed, float* buffer) {
  if constexpr (Form::kReadsFloats) {
    return packed;
  } else {
    return buffer;
  }
}

/// One tile on the calling thread, which must round toward zero.
template <class Form>
void RunFusedTile(const FusedTile& t) {
  using T = typename Form::Value;
  const FusedSteps& steps = *t.steps;
  const FusedRule& rule = steps.rule;
  const std::int64_t width = PanelLanes(), each = rule.instruction / rule.group;
  const std::int64_t total = rule.steps(t.k);
  const std::int64_t per_slice =
      std::min(total, std::max<std::int64_t>(Form::kSlice / rule.instruction, 1) * each);
  const std::int64_t slice = per_slice * rule.group;
  const std::int64_t rows = t.row_end - t.row_begin, lanes = t.lane_end - t.lane_begin;
  const std::int64_t row_panels = (rows + kRowPanel - 1) / kRowPanel;
  const std::int64_t lane_panels = (lanes + width - 1) / width;
  const std::int64_t panel = kRowPanel * slice, panel_sums = kRowPanel * width;

  // A vector more than needed: the last one may reach beyond.
  const auto room = [&](std::int64_t n) { return static_cast<std::size_t>(n + width); };
  const auto floats = hwy::AllocateAligned<float>(room(std::max(width, kRowPanel) * slice));
  const auto row_values = hwy::AllocateAligned<T>(room(row_panels * panel));
  const auto row_exponents = hwy::AllocateAligned<std::int32_t>(room(row_panels * panel));
  const auto lane_values = hwy::AllocateAligned<T>(room(Form::kCopies * width * slice));
  const auto lane_exponents = hwy::AllocateAligned<std::int16_t>(room(width * slice));
  const auto runs = hwy::AllocateAligned<Run>(static_cast<std::size_t>(2 * slice + 1));
  const auto sums =
      hwy::AllocateAligned<float>(static_cast<std::size_t>(row_panels * lane_panels * panel_sums));
  std::fill_n(floats.get(), room(std::max(width, kRowPanel) * slice), 0.0f);

  for (std::int64_t first = 0; first < total; first += per_slice) {
    const std::int64_t step_count = std::min(per_slice, total - first);
    const std::int64_t k = first * rule.group, depth = step_count * rule.group;
    const std::int64_t present = std::clamp<std::int64_t>(t.k - k, 0, depth);
    Run *row_runs = runs.get(), *lane_runs = runs.get() + slice;
    const std::int64_t row_run_count = FindRuns(t.rows->values.depth + k, present, row_runs);
    const std::int64_t lane_run_count = FindRuns(t.lanes->values.depth + k, present, lane_runs);
    for (std::int64_t p = 0; p < row_panels; ++p) {
      const std::int64_t row = t.row_begin + p * kRowPanel;
      const PanelSlice part{*t.rows,   row,      std::min(kRowPanel, t.row_end - row),
                            kRowPanel, k,        present,
                            depth,     row_runs, row_run_count};
      float* const values = Place<Form>(row_values.get() + p * panel, floats.get());
      PackValues(part, values);
      PackRowExponents(part, steps, values, row_exponents.get() + p * panel);
      Form::PackRows(part, rule, values, row_values.get() + p * panel);
    }
    for (std::int64_t q = 0; q < lane_panels; ++q) {
      const std::int64_t lane = t.lane_begin + q * width;
      const std::int64_t panel_lanes = std::min(width, t.lane_end - lane);
      const PanelSlice part{*t.lanes, lane,  panel_lanes, width,         k,
                            present,  depth, lane_runs,   lane_run_count};
      float* const values = Place<Form>(lane_values.get(), floats.get());
      PackValues(part, values);
      PackLaneExponents(part, steps, values, lane_exponents.get());
      Form::PackLanes(part, steps, values, lane_values.get());
      for (std::int64_t p = 0; p < row_panels; ++p) {
        const std::int64_t row = t.row_begin + p * kRowPanel;
        const std::int64_t panel_rows = std::min(kRowPanel, t.row_end - row);
        float* sum = sums.get() + (q * row_panels + p) * panel_sums;
        if (first == 0) BeginPanel(t, row, panel_rows, lane, panel_lanes, sum);
        for (std::int64_t r = 0; r < panel_rows; r += Form::kRows) {
          RunRows<Form, Form::kRows, T>(
              panel_rows - r,
              {steps, row_values.get() + p * panel + r, row_exponents.get() + p * panel + r,
               lane_values.get(), lane_exponents.get(), sum + r * width, 0, step_count});
        }
        if (first + step_count == total) EndPanel(t, row, panel_rows, lane, panel_lanes, sum);
      }
    }
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR
#endif  // NUMEMU_FUSED_LOOP_INL
