// The register block of the float64 form: rows x four vectors x two accumulators; once per Highway
// target.
#if defined(NUMEMU_DOUBLE_FORM_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_DOUBLE_FORM_ROWS_INL
#undef NUMEMU_DOUBLE_FORM_ROWS_INL
#else
#define NUMEMU_DOUBLE_FORM_ROWS_INL
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>

#include "emu/unit/fused/prepare_loop-inl.hpp"

#if HWY_TARGET != HWY_SCALAR  // which has no halves of vectors
HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
    StartOne(hn::LowerHalf(half_i, fields), hn::LowerHalf(half, c), above_low, below_low);
    StartOne(hn::UpperHalf(half_i, fields), hn::UpperHalf(half, c), above_high, below_high);
    (void)f;
  }

  template <class E, class C>
  static HWY_INLINE void StartOne(E field, C c, V& above, V& below) {
    const D d;
    const hn::RebindToSigned<D> di;
    const auto m = hn::BitCast(d, hn::ShiftLeft<52>(hn::PromoteTo(di, field)));
    const auto wide = hn::PromoteTo(d, c);
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
  HWY_INLINE void Join() {}
  HWY_INLINE void AddPlain(const double*, V, V, V, V) {}
  HWY_INLINE void Finish(const FusedSteps&, float*) {}
};

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR
#endif  // NUMEMU_DOUBLE_FORM_ROWS_INL
