// Packing for the float and the half form: values in the form of each, exponents as bytes; once per
// Highway target.
#if defined(NUMEMU_FLOAT_FORM_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_FLOAT_FORM_PACK_INL
#undef NUMEMU_FLOAT_FORM_PACK_INL
#else
#define NUMEMU_FLOAT_FORM_PACK_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/fused/float_form_kernel-inl.hpp"
#include "emu/unit/fused/float_form_tile.hpp"

// Outside the namespace: clang warns where Highway's target applies to nothing.
#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Ints = hn::Vec<IntTag>;

constexpr int kFloatBias = 127, kNonZeroByte = 64;

/// The exponents of a vector of values as FloatFormSide's bytes, in 32-bit lanes.
HWY_INLINE Ints ExponentBytes(const FloatFormSide& side, Floats values) {
  const IntTag d;
  const Ints bits = hn::And(hn::BitCast(d, values), hn::Set(d, 0x7fffffff));
  const Ints field =
      hn::Max(hn::ShiftRight<23>(bits), hn::Set(d, side.smallest_normal + kFloatBias));
  const Ints byte = hn::Sub(field, hn::Set(d, side.lowest + kFloatBias - kNonZeroByte));
  return hn::IfThenZeroElse(hn::Eq(bits, hn::Zero(d)), byte);
}

/// A slice of K: whole steps from k on, of which `depth` products exist; the rest are +0.
struct FormSlice {
  std::int64_t k = 0, steps = 0, depth = 0;
  int group = 0;
};

/// values and exponents [step][row][k] of `padded` rows, those from `rows` on +0.
inline void PackRows(const FloatFormSide& side, std::int64_t first, std::int64_t rows,
                     std::int64_t padded, const FormSlice& slice, float* HWY_RESTRICT values,
                     std::uint32_t* HWY_RESTRICT exponents) {
  const std::int64_t group = slice.group;
  float* to = values;
  for (std::int64_t step = 0; step < slice.steps; ++step) {
    const std::int64_t count = std::clamp<std::int64_t>(slice.depth - step * group, 0, group);
    const std::int32_t* const depth = side.values.depth + slice.k + step * group;
    bool neighbours = true;
    for (std::int64_t k = 1; k < count; ++k) neighbours &= depth[k] == depth[0] + k;
    for (std::int64_t i = 0; i < padded; ++i, to += group) {
      const std::int64_t valid = i < rows ? count : 0;
      const float* const from =
          i < rows ? side.values.values + side.values.row[first + i] : nullptr;
      if (neighbours && valid > 0) {
        CopyRun(from + depth[0], to, valid);
      } else {
        for (std::int64_t k = 0; k < valid; ++k) to[k] = from[depth[k]];
      }
      std::fill(to + valid, to + group, 0.0f);
    }
  }
  // Four times the same byte: x + x 2^8, then + that 2^16.
  const FloatTag d;
  const auto size = slice.steps * padded * group;
  for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    Ints byte = ExponentBytes(side, hn::Load(d, values + i));
    byte = hn::Or(byte, hn::ShiftLeft<8>(byte));
    byte = hn::Or(byte, hn::ShiftLeft<16>(byte));
    hn::Store(byte, IntTag(), reinterpret_cast<std::int32_t*>(exponents) + i);
  }
}

/// Splits `plain` [k][lane] into parts [k][sign][lane] and exponents [k][lane].
inline void SplitLanes(const FloatFormSide& side, const float* HWY_RESTRICT plain,
                       std::int64_t depth, float* HWY_RESTRICT parts,
                       std::uint8_t* HWY_RESTRICT exponents) {
  const FloatTag d;
  const hn::Rebind<std::uint8_t, IntTag> d8;
  const std::int64_t width = PanelWidth();
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t j = 0; j < width; j += step) {
      const Floats b = hn::Load(d, plain + k * width + j);
      hn::Store(hn::Max(b, hn::Zero(d)), d, parts + 2 * k * width + j);
      hn::Store(hn::Min(b, hn::Zero(d)), d, parts + (2 * k + 1) * width + j);
      hn::StoreU(hn::DemoteTo(d8, ExponentBytes(side, b)), d8, exponents + k * width + j);
    }
  }
}

/// The float16 of values times a power of two, exact by the caller's promise.
template <class D16 = hn::Rebind<hwy::float16_t, FloatTag>>
HWY_INLINE hn::Vec<D16> Halves(float power, Floats values) {
  return hn::DemoteTo(D16(), hn::Mul(values, hn::Set(FloatTag(), power)));
}

/// The half form's rows: [step][row][k] as above.
inline void HalveRows(float power, const float* HWY_RESTRICT values, std::int64_t size,
                      std::uint16_t* HWY_RESTRICT halves) {
  const FloatTag d;
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  for (std::int64_t i = 0; i < size; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::StoreU(Halves(power, hn::Load(d, values + i)), d16,
               reinterpret_cast<hwy::float16_t*>(halves) + i);
}

/// The half form's lanes: `plain` [k][lane] as pairs [k / 2][lane], even k in the low half, and
/// exponents [k][lane].
inline void PairLanes(const FloatFormSide& side, float power, const float* HWY_RESTRICT plain,
                      std::int64_t depth, std::uint32_t* HWY_RESTRICT pairs,
                      std::uint8_t* HWY_RESTRICT exponents) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  const hn::Rebind<std::uint8_t, IntTag> d8;
  const std::int64_t width = PanelWidth();
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  const auto halves = [&](Floats x) HWY_ATTR {
    return hn::PromoteTo(d32, hn::BitCast(d16, Halves(power, x)));
  };
  for (std::int64_t k = 0; k < depth; k += 2) {
    for (std::int64_t j = 0; j < width; j += step) {
      const Floats even = hn::Load(d, plain + k * width + j);
      const Floats odd = hn::Load(d, plain + (k + 1) * width + j);
      hn::Store(hn::Or(halves(even), hn::ShiftLeft<16>(halves(odd))), d32,
                pairs + k / 2 * width + j);
      hn::StoreU(hn::DemoteTo(d8, ExponentBytes(side, even)), d8, exponents + k * width + j);
      hn::StoreU(hn::DemoteTo(d8, ExponentBytes(side, odd)), d8, exponents + (k + 1) * width + j);
    }
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_NATIVE_FMA
#endif  // NUMEMU_FLOAT_FORM_PACK_INL
