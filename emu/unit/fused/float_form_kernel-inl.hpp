// One step of the float form for a few rows and a panel of lanes; once per Highway target.
#if defined(NUMEMU_FLOAT_FORM_KERNEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_FLOAT_FORM_KERNEL_INL
#undef NUMEMU_FLOAT_FORM_KERNEL_INL
#else
#define NUMEMU_FLOAT_FORM_KERNEL_INL
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>

// Outside the namespace: clang warns where Highway's target applies to nothing.
#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using ByteTag = hn::ScalableTag<std::uint8_t>;
using Floats = hn::Vec<FloatTag>;
using Bytes = hn::Vec<ByteTag>;

/// Lanes of a panel: as many as there are bytes in a vector, so four vectors of floats.
HWY_INLINE std::int64_t PanelWidth() { return static_cast<std::int64_t>(hn::Lanes(ByteTag())); }

/// Rows computed together: two sums for each of 4 vectors take 8 registers of 16, or 16 of 32.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kStepRows = 2;
#else
constexpr int kStepRows = 1;
#endif

/// The two sums of one row and four vectors of lanes: `up` from +M on, `down` from -M on.
struct RowSums {
  Floats up0, up1, up2, up3, down0, down1, down2, down3;
};

/// What all steps of a tile share.
struct StepConstants {
  int group = 0;
  std::uint8_t field_offset = 0;  ///< byte sum of exponents -> float32 exponent field
  int unit_offset = 0;            ///< of exponent fields: from E to M = 2^(E + 23 - F)
  std::uint32_t kept = 0;         ///< mask of the bits a float32 register keeps
};

/// kStepRows rows of A for one step, [row][k], and a panel of B: [k][sign][lane] and [k][lane].
struct StepOperands {
  const float* values;
  const std::uint32_t* exponents;  ///< four times the same byte
  const float* lanes;              ///< max(b, 0), then min(b, 0)
  const std::uint8_t* lane_exponents;
};

/// Exponent fields of the largest product exponents, [row][lane]. A step without products has the
/// field 1, -126, which is no larger than that of any C.
template <int kRows>
HWY_INLINE void LargestFields(const StepConstants& s, const StepOperands& x,
                              std::uint8_t* HWY_RESTRICT fields) {
  const ByteTag d;
  const hn::Repartition<std::uint32_t, ByteTag> d32;
  const std::int64_t width = PanelWidth();
  const Bytes none = hn::Set(d, std::uint8_t{127});
  Bytes most0 = none, most1 = none;
  for (int k = 0; k < s.group; ++k) {
    const Bytes b = hn::Load(d, x.lane_exponents + k * width);
    most0 = hn::Max(most0, hn::Add(b, hn::BitCast(d, hn::Set(d32, x.exponents[k]))));
    if constexpr (kRows == 2)
      most1 = hn::Max(most1, hn::Add(b, hn::BitCast(d, hn::Set(d32, x.exponents[s.group + k]))));
  }
  const Bytes offset = hn::Set(d, s.field_offset), one = hn::Set(d, std::uint8_t{1});
  hn::Store(hn::IfThenElse(hn::Eq(most0, none), one, hn::Add(most0, offset)), d, fields);
  if constexpr (kRows == 2)
    hn::Store(hn::IfThenElse(hn::Eq(most1, none), one, hn::Add(most1, offset)), d, fields + width);
}

/// The power of two of C's exponent; 0 for zero and (float32) for subnormal numbers, which count
/// with -126.
template <bool kHalf>
HWY_INLINE Floats PowerOf(Floats c) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const Floats power = hn::And(c, hn::BitCast(d, hn::Set(du, 0x7f800000u)));
  if constexpr (!kHalf) return power;
  // Every non-zero float16 is at least 2^-24 and counts with at least 2^-14.
  return hn::Max(power, hn::Min(hn::Mul(hn::Abs(c), hn::Set(d, 0x1p10f)), hn::Set(d, 0x1p-14f)));
}

/// M and the sums after C joined: max(c, 0) is cut where it meets M, min(c, 0) where it meets -M.
template <bool kHalf>
HWY_INLINE void Begin(const StepConstants& s, Floats c, const std::uint8_t* HWY_RESTRICT fields,
                      Floats& up, Floats& down) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<std::uint8_t, IntTag> d8;
  const auto product = hn::ShiftLeft<23>(hn::PromoteTo(di, hn::LoadU(d8, fields)));
  const auto largest = hn::Max(product, hn::BitCast(di, PowerOf<kHalf>(c)));
  const Floats m = hn::BitCast(d, hn::Add(largest, hn::Set(di, s.unit_offset)));
  up = hn::Add(m, hn::Max(c, hn::Zero(d)));
  down = hn::Sub(hn::Min(c, hn::Zero(d)), m);
}

/// The register: up + down is the exact sum, as the M cancel.
template <bool kHalf>
HWY_INLINE Floats Register(const StepConstants& s, Floats up, Floats down) {
  const FloatTag d;
  const Floats sum = hn::Add(up, down);
  if constexpr (kHalf) {
    // The instruction ignores MXCSR and rounds to nearest even (x86: see float_form_available).
    const hn::Rebind<hwy::float16_t, FloatTag> d16;
    return hn::PromoteTo(d, hn::DemoteTo(d16, sum));
  } else {
    return hn::And(sum, hn::BitCast(d, hn::Set(hn::RebindToUnsigned<FloatTag>(), s.kept)));
  }
}

/// One product per lane: a positive one goes up, a negative one down. The sign of a swaps which
/// part of b gives which.
HWY_INLINE void Accumulate(const float* a, const float* HWY_RESTRICT b, std::int64_t width,
                           RowSums& sums) {
  const FloatTag d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const Floats value = hn::Set(d, *a);
  const std::int64_t swap = (std::bit_cast<std::int32_t>(*a) >> 31) & width;
  const float *up = b + swap, *down = b + (width - swap);
  sums.up0 = hn::MulAdd(value, hn::Load(d, up), sums.up0);
  sums.up1 = hn::MulAdd(value, hn::Load(d, up + step), sums.up1);
  sums.up2 = hn::MulAdd(value, hn::Load(d, up + 2 * step), sums.up2);
  sums.up3 = hn::MulAdd(value, hn::Load(d, up + 3 * step), sums.up3);
  sums.down0 = hn::MulAdd(value, hn::Load(d, down), sums.down0);
  sums.down1 = hn::MulAdd(value, hn::Load(d, down + step), sums.down1);
  sums.down2 = hn::MulAdd(value, hn::Load(d, down + 2 * step), sums.down2);
  sums.down3 = hn::MulAdd(value, hn::Load(d, down + 3 * step), sums.down3);
}

template <bool kHalf>
HWY_INLINE void BeginRow(const StepConstants& s, const float* state,
                         const std::uint8_t* HWY_RESTRICT fields, RowSums& sums) {
  const FloatTag d;
  const std::size_t step = hn::Lanes(d);
  Begin<kHalf>(s, hn::Load(d, state), fields, sums.up0, sums.down0);
  Begin<kHalf>(s, hn::Load(d, state + step), fields + step, sums.up1, sums.down1);
  Begin<kHalf>(s, hn::Load(d, state + 2 * step), fields + 2 * step, sums.up2, sums.down2);
  Begin<kHalf>(s, hn::Load(d, state + 3 * step), fields + 3 * step, sums.up3, sums.down3);
}

template <bool kHalf>
HWY_INLINE void EndRow(const StepConstants& s, const RowSums& sums, float* state) {
  const FloatTag d;
  const std::size_t step = hn::Lanes(d);
  hn::Store(Register<kHalf>(s, sums.up0, sums.down0), d, state);
  hn::Store(Register<kHalf>(s, sums.up1, sums.down1), d, state + step);
  hn::Store(Register<kHalf>(s, sums.up2, sums.down2), d, state + 2 * step);
  hn::Store(Register<kHalf>(s, sums.up3, sums.down3), d, state + 3 * step);
}

/// state[row][lane] <- the register after one step. Must run with rounding toward zero.
template <bool kHalf>
HWY_NOINLINE void Step(const StepConstants& s, const StepOperands& x, float* HWY_RESTRICT state) {
  const std::int64_t width = PanelWidth();
  HWY_ALIGN std::uint8_t fields[kStepRows * HWY_MAX_BYTES];
  LargestFields<kStepRows>(s, x, fields);
  RowSums first, second;
  BeginRow<kHalf>(s, state, fields, first);
  if constexpr (kStepRows == 2) BeginRow<kHalf>(s, state + width, fields + width, second);
  const float* b = x.lanes;
  for (int k = 0; k < s.group; ++k, b += 2 * width) {
    Accumulate(x.values + k, b, width, first);
    if constexpr (kStepRows == 2) Accumulate(x.values + s.group + k, b, width, second);
  }
  EndRow<kHalf>(s, first, state);
  if constexpr (kStepRows == 2) EndRow<kHalf>(s, second, state + width);
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_NATIVE_FMA
#endif  // NUMEMU_FLOAT_FORM_KERNEL_INL
