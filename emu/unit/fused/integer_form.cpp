// The 32-bit integer form of fused steps; per Highway target.
#include "emu/unit/fused/integer_form.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/integer_form.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <cstdint>

#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/fused/prepare_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
using IntegerFormF = hn::ScalableTag<float>;
using IntegerFormI = hn::ScalableTag<std::int32_t>;

/// x toward zero, |x| < 2^31. Highway's ConvertTo mends results beyond, which costs twice as much
/// as the conversion itself.
HWY_INLINE hn::Vec<IntegerFormI> Truncate(hn::Vec<IntegerFormF> x) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::Vec<IntegerFormI>{_mm512_cvttps_epi32(x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec<IntegerFormI>{_mm256_cvttps_epi32(x.raw)};
#else
  return hn::ConvertTo(IntegerFormI(), x);
#endif
}

/// One vector of outputs in one step: the sum in units of 2^(E - F), and 2^(F - E).
struct IntegerSum {
  using F = IntegerFormF;
  using I = IntegerFormI;
  hn::Vec<I> sum;
  hn::Vec<F> scale;

  /// C is the first addend.
  HWY_INLINE void Start(hn::Vec<I> of_products, const FusedSteps& steps, const float* c) {
    const F f;
    const I i;
    const auto value = hn::Load(f, c);
    const auto largest = IncludeC(f, of_products, value, steps);
    const auto field = hn::Sub(hn::Set(i, 2 * 127 + steps.rule.fraction_bits), largest);
    scale = hn::BitCast(f, hn::ShiftLeft<23>(field));
    sum = Truncate(hn::Mul(value, scale));
  }
  /// The product is exact; so is its multiple, or it is below one unit.
  HWY_INLINE void Add(hn::Vec<F> a, hn::Vec<F> b) {
    sum = hn::Add(sum, Truncate(hn::Mul(hn::Mul(a, b), scale)));
  }
  /// The reciprocal of the scale.
  HWY_INLINE hn::Vec<F> Unit() const {
    const I i;
    return hn::BitCast(F(), hn::Sub(hn::Set(i, 254 << 23), hn::BitCast(i, scale)));
  }
  HWY_INLINE void Finish(const FusedSteps& steps, float* c) const {
    const F f;
    if (steps.rule.half) {
      // Infinity stays what it is.
      const auto old = hn::Load(f, c);
      hn::Store(hn::IfThenElse(hn::IsInf(old), old, Half()), f, c);
      return;
    }
    // Toward zero; the product is exact, a multiple of 2^-126.
    const auto x = hn::Mul(hn::ConvertTo(f, sum), Unit());
    hn::Store(KeepBits(f, x, steps.rule.kept_bits), f, c);
  }
  /// The sum rounded to float16, to nearest even: its last bits, as many as lie below the ulp of a
  /// float16 of its size, are rounded off as an integer.
  HWY_INLINE hn::Vec<F> Half() const {
    const F f;
    const I i;
    const hn::RebindToUnsigned<I> u;
    const auto unit = Unit();
    const auto one = hn::Set(u, 1u);
    const auto magnitude = hn::BitCast(u, hn::Abs(sum));
    // Converted toward zero, so that the exponent is that of the leading bit.
    const auto exponent_of = [&](auto x) HWY_ATTR {
      return hn::Sub(hn::ShiftRight<23>(hn::BitCast(i, x)), hn::Set(i, 127));
    };
    const auto leading = exponent_of(hn::ConvertTo(f, hn::BitCast(i, magnitude)));
    const auto smallest = hn::Sub(hn::Set(i, -14), exponent_of(unit));
    const auto shift =
        hn::BitCast(u, hn::Max(hn::Sub(hn::Max(leading, smallest), hn::Set(i, 10)), hn::Zero(i)));
    const auto ulp = hn::Shl(one, shift);
    const auto below_half = hn::ShiftRight<1>(hn::Sub(ulp, one));
    const auto odd = hn::And(hn::Shr(magnitude, shift), hn::Min(shift, one));
    const auto rounded =
        hn::AndNot(hn::Sub(ulp, one), hn::Add(hn::Add(magnitude, below_half), odd));
    auto x = hn::Mul(hn::ConvertTo(f, hn::BitCast(i, rounded)), unit);
    x = hn::IfThenElse(hn::Ge(x, hn::Set(f, 65536.0f)), hn::Inf(f), x);
    const auto sign = hn::And(hn::BitCast(u, sum), hn::Set(u, 0x80000000u));
    return hn::Or(x, hn::BitCast(f, sign));
  }
};

/// One row of a panel of lanes, and the rows after it; recursion keeps every vector in a register.
template <int kRows>
struct IntegerRows {
  using F = IntegerFormF;
  IntegerSum first, second;
  IntegerRows<kRows - 1> rest;

  template <class Largest>
  HWY_INLINE void Start(const Largest& largest, const FusedSteps& steps, const float* sums) {
    const std::size_t lanes = hn::Lanes(F());
    first.Start(largest.Low(), steps, sums);
    second.Start(largest.High(), steps, sums + lanes);
    rest.Start(largest.rest, steps, sums + 2 * lanes);
  }
  HWY_INLINE void Add(const float* row, hn::Vec<F> b_first, hn::Vec<F> b_second) {
    const auto a = hn::Set(F(), *row);
    first.Add(a, b_first);
    second.Add(a, b_second);
    rest.Add(row + 1, b_first, b_second);
  }
  HWY_INLINE void Finish(const FusedSteps& steps, float* sums) const {
    const std::size_t lanes = hn::Lanes(F());
    first.Finish(steps, sums);
    second.Finish(steps, sums + lanes);
    rest.Finish(steps, sums + 2 * lanes);
  }
};
template <>
struct IntegerRows<0> {
  template <class Largest>
  HWY_INLINE void Start(const Largest&, const FusedSteps&, const float*) {}
  HWY_INLINE void Add(const float*, hn::Vec<IntegerFormF>, hn::Vec<IntegerFormF>) {}
  HWY_INLINE void Finish(const FusedSteps&, float*) const {}
};
#endif  // HWY_TARGET != HWY_SCALAR

#if HWY_TARGET != HWY_SCALAR
struct IntegerForm {
  using Value = float;
  /// 6 rows x 2 vectors x (sum, scale) of 32 registers, or a third of it of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
  static constexpr int kRows = 6;
#else
  static constexpr int kRows = 2;
#endif
  static constexpr std::int64_t kCopies = 1;
  /// Depths packed at a time: the panels of a block then stay in the first-level cache.
  static constexpr std::int64_t kSlice = 64;
  static constexpr bool kReadsFloats = true;
  static void PackRows(const PanelSlice&, const FusedRule&, const float*, float*) {}
  static void PackLanes(const PanelSlice&, const FusedSteps&, const float*, float*) {}

  template <int kRowCount>
  HWY_NOINLINE static void Multiply(const Block<float>& block) {
    const FusedSteps steps = block.steps;  // a copy: stores to `sums` could change the original
    const StepDepths depths(steps.rule);
    const std::int64_t width = PanelLanes();
    const hn::ScalableTag<float> d;
    const std::size_t half = hn::Lanes(d);
    for (std::int64_t s = 0; s < block.step_count; ++s) {
      const std::int64_t first = FirstDepth(steps.rule, block.first_step + s);
      LargestExponents<kRowCount> largest;
      largest.Find(depths, steps.least, block.row_exponents + first * kRowPanel,
                   block.lane_exponents + first * width);
      IntegerRows<kRowCount> rows;
      rows.Start(largest, steps, block.sums);
      const float* row = block.rows + first * kRowPanel;
      const float* lane = block.lanes + first * width;
      for (std::int64_t c = 0; c < depths.runs; ++c) {
        for (std::int64_t q = 0; q < depths.run; ++q) {
          rows.Add(row, hn::Load(d, lane), hn::Load(d, lane + half));
          row += kRowPanel;
          lane += width;
        }
        row += depths.skip * kRowPanel;
        lane += depths.skip * width;
      }
      rows.Finish(steps, block.sums);
    }
  }
};

void RunIntegerForm(const FusedTile& t) { RunFusedTile<IntegerForm>(t); }
bool HasIntegerForm() { return true; }
#else
void RunIntegerForm(const FusedTile&) {}
bool HasIntegerForm() { return false; }
#endif

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunIntegerForm);
HWY_EXPORT(HasIntegerForm);

bool has_integer_form() { return HWY_DYNAMIC_DISPATCH(HasIntegerForm)(); }

namespace {

/// On the calling thread, which must round toward zero; the best target of this CPU is chosen at
/// run time.
void run_integer_tile(const FusedTile& t) { HWY_DYNAMIC_DISPATCH(RunIntegerForm)(t); }

/// In units of 2^(E - F) a product is below 4 * 2^F and C below 2 * 2^F. Their sum must leave room
/// for half a float16 ulp of its 31 bits, 2^19, when that is rounded up.
bool sums_fit_integers(const FusedRule& rule) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - (std::int64_t{1} << 19);
  return rule.fraction_bits >= 2 && rule.fraction_bits <= 28 &&
         (4 * std::int64_t{rule.group} + 2) << rule.fraction_bits <= kLimit;
}

/// Products are float32 numbers: they have as many bits, and neither the first nor the last one is
/// out of range. The scales 2^(F - E) and 2^(E - F) are normal float32 numbers then: the largest
/// exponent E is at least lowest + F and at most 128.
bool products_fit(const FusedOperands& o, const FusedSteps& steps) {
  const int bits = o.a.mantissa_bits + 1 + o.b.mantissa_bits + 1;
  return bits <= 24 && steps.lowest >= -126 && o.highest_product + 2 <= 128;
}

/// The rounding to float16 shifts by less than 32 bits.
bool half_fits(const FusedSteps& steps) { return !steps.rule.half || steps.lowest >= -54; }

}  // namespace

bool multiply_fused_integer(const UnitDescription& unit, const Gemm& gemm) {
  const auto rule = fused_rule(unit);
  if (!rule || !rule->usual_register() || rule->c_at_end || rule->scaled ||
      !sums_fit_integers(*rule) || !has_integer_form())
    return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands) return false;
  const FusedSteps steps = fused_steps(unit, *operands);
  const bool in_range = rule->half || operands->bounded;
  if (!in_range || !products_fit(*operands, steps) || !half_fits(steps)) return false;
  run_fused_tiles(gemm, *operands, steps, run_integer_tile);
  finish_fused(unit, gemm, *operands);
  return true;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
