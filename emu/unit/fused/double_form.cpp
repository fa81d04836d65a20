// The float64 form of fused steps: two accumulators per output; per Highway target.
#include "emu/unit/fused/double_form.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/double_form.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "emu/unit/fused/prepare.hpp"
#include "emu/unit/fused/prepare_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
/// One row of a panel of lanes, and the rows after it; recursion keeps every vector in a register.
/// `above` starts at +M and collects what is positive, `below` starts at -M and collects what is
/// negative, M = 2^(E + 52 - F): their last bit is 2^(E - F), and under rounding toward zero each
/// multiply-add cuts its product there and adds it exactly.
template <int kRows>
struct DoubleRows {
  using D = hn::ScalableTag<double>;
  using F = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  V above0, above1, above2, above3, below0, below1, below2, below3;
  DoubleRows<kRows - 1> rest;

  /// C is the first addend. Whether nothing can be cut in any of the rows: then every addend is a
  /// multiple of 2^(E - F).
  template <class Largest>
  HWY_INLINE bool Start(const Largest& largest, const FusedSteps& steps, const float* sums) {
    const F f;
    const std::size_t lanes = hn::Lanes(f);
    const auto c0 = hn::Load(f, sums), c1 = hn::Load(f, sums + lanes);
    const auto e0 = IncludeC(f, largest.Low(), c0, steps);
    const auto e1 = IncludeC(f, largest.High(), c1, steps);
    StartTwo(e0, c0, steps, above0, above1, below0, below1);
    StartTwo(e1, c1, steps, above2, above3, below2, below3);
    const hn::RebindToSigned<F> fi;
    const auto limit = hn::Set(fi, steps.lowest + steps.rule.fraction_bits + 127);
    const bool uncut = hn::AllTrue(fi, hn::Eq(hn::Max(hn::Max(e0, e1), limit), limit));
    const bool rest_uncut = rest.Start(largest.rest, steps, sums + 2 * lanes);
    return uncut && rest_uncut;
  }

  template <class E>
  static HWY_INLINE void StartTwo(E exponents, hn::Vec<F> c, const FusedSteps& steps, V& above_low,
                                  V& above_high, V& below_low, V& below_high) {
    const F f;
    const hn::RebindToSigned<F> fi;
    const hn::Half<F> half;
    const hn::Half<decltype(fi)> half_i;
    const auto fields = hn::Add(exponents, hn::Set(fi, 1023 - 127 + 52 - steps.rule.fraction_bits));
    const RoundingMode alignment = steps.rule.alignment;
    StartOne(hn::LowerHalf(half_i, fields), hn::LowerHalf(half, c), alignment, above_low,
             below_low);
    StartOne(hn::UpperHalf(half_i, fields), hn::UpperHalf(half, c), alignment, above_high,
             below_high);
    (void)f;
  }

  template <class E, class C>
  static HWY_INLINE void StartOne(E field, C c, RoundingMode alignment, V& above, V& below) {
    const D d;
    const hn::RebindToSigned<D> di;
    const auto m = hn::BitCast(d, hn::ShiftLeft<52>(hn::PromoteTo(di, field)));
    const auto wide = hn::PromoteTo(d, c);
    if (alignment != RoundingMode::rtz) {
      below = hn::Mul(m, hn::Set(d, 1.5));
      above = hn::Zero(d);
      const V one = hn::Set(d, 1.0);
      if (alignment == RoundingMode::rne)
        return AddAligned<RoundingMode::rne>(one, wide, below, above);
      if (alignment == RoundingMode::rdn)
        return AddAligned<RoundingMode::rdn>(one, wide, below, above);
      return AddAligned<RoundingMode::rodd>(one, wide, below, above);
    }
    above = hn::Add(m, hn::Max(wide, hn::Zero(d)));
    below = hn::Sub(hn::Min(wide, hn::Zero(d)), m);
  }

  /// lanes: positive values, then negative ones. The sign of the row's value selects the half with
  /// positive products.
  HWY_INLINE void AddCut(const double* row, const double* lanes, std::int64_t width) {
    const D d;
    const std::size_t n = hn::Lanes(d);
    const std::int64_t negative = std::bit_cast<std::int64_t>(*row) >> 63;
    const double* const to_above = lanes + (negative & width);
    const double* const to_below = lanes + (~negative & width);
    const V a = hn::Set(d, *row);
    above0 = hn::MulAdd(a, hn::Load(d, to_above), above0);
    above1 = hn::MulAdd(a, hn::Load(d, to_above + n), above1);
    above2 = hn::MulAdd(a, hn::Load(d, to_above + 2 * n), above2);
    above3 = hn::MulAdd(a, hn::Load(d, to_above + 3 * n), above3);
    below0 = hn::MulAdd(a, hn::Load(d, to_below), below0);
    below1 = hn::MulAdd(a, hn::Load(d, to_below + n), below1);
    below2 = hn::MulAdd(a, hn::Load(d, to_below + 2 * n), below2);
    below3 = hn::MulAdd(a, hn::Load(d, to_below + 3 * n), below3);
    rest.AddCut(row + 1, lanes, width);
  }

  /// Other alignments than toward zero: `below` stays 1.5 M, where the last bit of every sum with a
  /// product is 2^(E - F), and `above` is the sum. sum += a * b, rounded there. Rounding toward
  /// zero beside 1.5 M is rounding down, and what it leaves is exact.
  template <RoundingMode kAlignment>
  static HWY_INLINE void AddAligned(V a, V b, V beside, V& sum) {
    const D d;
    const hn::RebindToSigned<D> di;
    V cut = hn::MulAdd(a, b, beside);
    if constexpr (kAlignment != RoundingMode::rdn) {
      const auto odd = hn::And(hn::BitCast(di, cut), hn::Set(di, 1));
      const V left = hn::MulAdd(a, b, hn::Sub(beside, cut));
      auto up = hn::Eq(odd, hn::Zero(di));
      if constexpr (kAlignment == RoundingMode::rodd) {
        up = hn::And(up, hn::RebindMask(di, hn::Gt(left, hn::Zero(d))));
      } else {
        // More than half of 2^(E - F), or half beside an odd one. Half of it is 1.5 M with a field
        // lower by 53 and no fraction; the order of positive numbers is that of their bits.
        constexpr std::int64_t kToHalf = (std::int64_t{53} << 52) + (std::int64_t{1} << 51);
        const auto shifted = hn::Add(hn::Add(hn::BitCast(di, left), odd), hn::Set(di, kToHalf));
        up = hn::Gt(shifted, hn::BitCast(di, beside));
      }
      const auto one = hn::IfThenElseZero(up, hn::Set(di, 1));
      cut = hn::BitCast(d, hn::Add(hn::BitCast(di, cut), one));
    }
    sum = hn::Add(sum, hn::Sub(cut, beside));
  }
  template <RoundingMode kAlignment>
  HWY_INLINE void AddAligned(const double* row, const double* lanes) {
    const D d;
    const std::size_t n = hn::Lanes(d);
    const V a = hn::Set(d, *row);
    AddAligned<kAlignment>(a, hn::Load(d, lanes), below0, above0);
    AddAligned<kAlignment>(a, hn::Load(d, lanes + n), below1, above1);
    AddAligned<kAlignment>(a, hn::Load(d, lanes + 2 * n), below2, above2);
    AddAligned<kAlignment>(a, hn::Load(d, lanes + 3 * n), below3, above3);
    rest.template AddAligned<kAlignment>(row + 1, lanes);
  }

  /// above += below: exact, both are multiples of 2^(E - F) and the sum is below M.
  HWY_INLINE void Join() {
    above0 = hn::Add(above0, below0);
    above1 = hn::Add(above1, below1);
    above2 = hn::Add(above2, below2);
    above3 = hn::Add(above3, below3);
    rest.Join();
  }

  /// Where nothing is cut: sums are multiples of 2^(E - F) below M, so no addition rounds.
  HWY_INLINE void AddPlain(const double* row, const double* lanes) {
    const D d;
    const std::size_t n = hn::Lanes(d);
    AddPlain(row, hn::Load(d, lanes), hn::Load(d, lanes + n), hn::Load(d, lanes + 2 * n),
             hn::Load(d, lanes + 3 * n));
  }
  HWY_INLINE void AddPlain(const double* row, V b0, V b1, V b2, V b3) {
    const V a = hn::Set(D(), *row);
    above0 = hn::MulAdd(a, b0, above0);
    above1 = hn::MulAdd(a, b1, above1);
    above2 = hn::MulAdd(a, b2, above2);
    above3 = hn::MulAdd(a, b3, above3);
    rest.AddPlain(row + 1, b0, b1, b2, b3);
  }

  /// The sums, which are in `above`, rounded to the register.
  HWY_INLINE void Finish(const FusedSteps& steps, float* sums) {
    const F f;
    const std::size_t lanes = hn::Lanes(f);
    hn::Store(Rounded(above0, above1, steps), f, sums);
    hn::Store(Rounded(above2, above3, steps), f, sums + lanes);
    rest.Finish(steps, sums + 2 * lanes);
  }

  static HWY_INLINE hn::Vec<F> Rounded(V low, V high, const FusedSteps& steps) {
    const D d;
    const F f;
    const hn::Half<F> half;
    if (steps.rule.half) {
      low = RoundToHalf(d, low);
      high = RoundToHalf(d, high);
    } else if (!steps.rule.usual_register()) {
      low = RoundToRegister(d, low, steps.rule);
      high = RoundToRegister(d, high, steps.rule);
    } else if (!steps.bounded && steps.rule.to_infinity) {
      low = Beyond(low);
      high = Beyond(high);
    }
    // Toward zero, so that what is beyond the largest float32 becomes that.
    const auto x = hn::Combine(f, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
    return steps.rule.half ? x : KeepBits(f, x, steps.rule.kept_bits);
  }

  static HWY_INLINE V Beyond(V x) {
    const D d;
    const auto infinity = hn::CopySignToAbs(hn::Inf(d), x);
    return hn::IfThenElse(hn::Ge(hn::Abs(x), hn::Set(d, 0x1p128)), infinity, x);
  }
};

template <>
struct DoubleRows<0> {
  using V = hn::Vec<hn::ScalableTag<double>>;
  template <class Largest>
  HWY_INLINE bool Start(const Largest&, const FusedSteps&, const float*) {
    return true;
  }
  HWY_INLINE void AddCut(const double*, const double*, std::int64_t) {}
  template <RoundingMode>
  HWY_INLINE void AddAligned(const double*, const double*) {}
  HWY_INLINE void Join() {}
  HWY_INLINE void AddPlain(const double*, V, V, V, V) {}
  HWY_INLINE void Finish(const FusedSteps&, float*) {}
};
#endif  // HWY_TARGET != HWY_SCALAR

#if HWY_NATIVE_FMA
struct DoubleForm {
  using Value = double;
  /// 3 rows x 4 vectors x 2 accumulators of 32 registers, or a third of it of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
  static constexpr int kRows = 3;
#else
  static constexpr int kRows = 1;
#endif
  /// Per depth: the positive values, the negative values, and all of them.
  static constexpr std::int64_t kCopies = 3;
  /// Depths packed at a time: the panels of a block then stay in the first-level cache.
  static constexpr std::int64_t kSlice = 32;
  static constexpr bool kReadsFloats = false;

  static double PowerOfTwo(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
  }

  static void PackRows(const PanelSlice& p, const FusedRule& rule, const float* values,
                       double* packed) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> d_float;
    const auto step = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t size = p.depth * p.width;
    for (std::int64_t i = 0; i < size; i += step)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(d_float, values + i)), d, packed + i);
    ForEachScaled(p, rule.group, [&](std::int64_t k, std::int64_t i, int scale) {
      packed[k * p.width + i] *= PowerOfTwo(scale);
    });
  }

  static void PackLanes(const PanelSlice& p, const FusedSteps& steps, const float* values,
                        double* packed) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> d_float;
    const auto step = static_cast<std::int64_t>(hn::Lanes(d));
    const auto zero = hn::Zero(d);
    for (std::int64_t k = 0; k < p.depth; ++k) {
      double* to = packed + k * kCopies * p.width;
      for (std::int64_t i = 0; i < p.width; i += step) {
        const auto value = hn::PromoteTo(d, hn::Load(d_float, values + k * p.width + i));
        hn::Store(hn::Max(value, zero), d, to + i);
        hn::Store(hn::Min(value, zero), d, to + p.width + i);
        if (ReadsAll(steps)) hn::Store(value, d, to + 2 * p.width + i);
      }
    }
    const int copies = ReadsAll(steps) ? 3 : 2;
    ForEachScaled(p, steps.rule.group, [&](std::int64_t k, std::int64_t i, int scale) {
      for (int c = 0; c < copies; ++c) packed[(k * kCopies + c) * p.width + i] *= PowerOfTwo(scale);
    });
  }

  /// Whether a step may read all values of a depth in one place, not the negative ones apart.
  static bool ReadsAll(const FusedSteps& steps) {
    return steps.plain_worthwhile || steps.rule.alignment != RoundingMode::rtz;
  }

  /// Calls add(row, lane) for every depth of a step.
  template <class Add>
  static HWY_INLINE void ForDepths(const StepDepths& depths, const double* row, const double* lane,
                                   const Add& add) {
    const std::int64_t width = PanelLanes();
    for (std::int64_t c = 0; c < depths.runs; ++c) {
      for (std::int64_t q = 0; q < depths.run; ++q) {
        add(row, lane);
        row += kRowPanel;
        lane += kCopies * width;
      }
      row += depths.skip * kRowPanel;
      lane += depths.skip * kCopies * width;
    }
  }

  template <int kRowCount>
  HWY_NOINLINE static void Multiply(const Block<double>& block) {
    const FusedSteps steps = block.steps;  // a copy: stores to `sums` could change the original
    const StepDepths depths(steps.rule);
    const std::int64_t width = PanelLanes();
    for (std::int64_t s = 0; s < block.step_count; ++s) {
      const std::int64_t first = FirstDepth(steps.rule, block.first_step + s);
      LargestExponents<kRowCount> largest;
      largest.Find(depths, steps.least, block.row_exponents + first * kRowPanel,
                   block.lane_exponents + first * width);
      DoubleRows<kRowCount> rows;
      const bool uncut = rows.Start(largest, steps, block.sums);
      const double* row = block.rows + first * kRowPanel;
      const double* lane = block.lanes + first * kCopies * width;
      const RoundingMode alignment = steps.rule.alignment;
      const auto aligned = [&](auto mode) HWY_ATTR {
        ForDepths(depths, row, lane, [&](const double* a, const double* b) HWY_ATTR {
          rows.template AddAligned<mode()>(a, b + 2 * width);
        });
      };
      if (uncut && steps.plain_worthwhile) {
        if (alignment == RoundingMode::rtz) rows.Join();
        ForDepths(depths, row, lane, [&](const double* a, const double* b) HWY_ATTR {
          rows.AddPlain(a, b + 2 * width);
        });
      } else if (alignment == RoundingMode::rtz) {
        ForDepths(depths, row, lane,
                  [&](const double* a, const double* b) HWY_ATTR { rows.AddCut(a, b, width); });
        rows.Join();
      } else if (alignment == RoundingMode::rne) {
        aligned(std::integral_constant<RoundingMode, RoundingMode::rne>());
      } else if (alignment == RoundingMode::rdn) {
        aligned(std::integral_constant<RoundingMode, RoundingMode::rdn>());
      } else {
        aligned(std::integral_constant<RoundingMode, RoundingMode::rodd>());
      }
      rows.Finish(steps, block.sums);
    }
  }
};

void RunDoubleForm(const FusedTile& t) { RunFusedTile<DoubleForm>(t); }
bool HasDoubleForm() { return true; }
#else
void RunDoubleForm(const FusedTile&) {}
bool HasDoubleForm() { return false; }
#endif

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunDoubleForm);
HWY_EXPORT(HasDoubleForm);

bool has_double_form() { return HWY_DYNAMIC_DISPATCH(HasDoubleForm)(); }

// The products that the float64 form supports, the proof of exactness, and the run.
//
// A step aligns to 2^E and cuts each addend's magnitude to a multiple of u = 2^(E - F), for any
// F >= 0. With M = 2^(E + 52 - F), float64 numbers in [M, 2 M) are the multiples of u: under
// rounding toward zero one fused multiply-add cuts a product there and adds it exactly, as long as
// the sum stays below 2 M. Negative products go to a second sum from -M on; the two meet exactly.
//   Below 2 M: a product is below 4 * 2^E (two significands below 2), C below 2 * 2^E, so a sum
//   grows by less than (4 G + 2) 2^E <= M where 4 G + 2 <= 2^(52 - F). sums_fit_doubles() checks it
//   for any number G of products of a step, and nothing else bounds G. The order of steps only says
//   which products a step reads, and those of pairs (k mod 4, odd first) are whole runs of two
//   where G is even. C is the first addend, or is added after the last step: by the host's addition
//   to float32, or, for other registers, as AddToRegister() proves. The register: the sum S is
//   exact, so any rounding of it is right that is computed from its bits. Its normal numbers have 1
//   to 23 fraction bits and exponents of float32. For |S| >= 2^smallest they are the high bits of
//   S. Below, |S| + 2^smallest, cut to 53 bits, has the register's subnormal unit where normal
//   numbers have their last bit; whether the cut lost anything joins the last of these bits, which
//   lies below half of that unit, so that both roundings see all of S. Rounded values are float32
//   numbers, and storing them rounds nothing. Other alignments than toward zero round a product
//   beside 1.5 M: it is below 4 * 2^E <= 2^51 u, so the sum stays in [M, 2 M), and its exact rest
//   has no more bits than the product.

namespace {

/// On the calling thread, which must round toward zero; the best target of this CPU is chosen at
/// run time.
void run_double_tile(const FusedTile& t) { HWY_DYNAMIC_DISPATCH(RunDoubleForm)(t); }

/// The sums of a step's positive and negative addends, each below (4 G + 2) 2^E, must stay below
/// M = 2^(E + 52 - F), so that the accumulators keep the ulp 2^(E - F) from M to 2 M.
bool sums_fit_doubles(const FusedRule& rule) {
  constexpr int kFractionBits = 52;
  return rule.fraction_bits < kFractionBits &&
         4 * std::int64_t{rule.group} + 2 <= std::int64_t{1}
                                                 << (kFractionBits - rule.fraction_bits);
}

}  // namespace

bool multiply_fused_double(const UnitDescription& unit, const Gemm& gemm) {
  // RoundToHalf()'s; a float16 C is a multiple of 2^-24.
  constexpr int kLowestForHalf = -66;
  const auto rule = fused_rule(unit);
  if (!rule || !sums_fit_doubles(*rule) || !has_double_form()) return false;
  const auto operands = prepare_fused(unit, gemm);
  if (!operands) return false;
  const FusedSteps steps = fused_steps(unit, *operands);
  if (rule->half && steps.lowest < kLowestForHalf) return false;
  run_fused_tiles(gemm, *operands, steps, run_double_tile);
  finish_fused(unit, gemm, *operands);
  return true;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
