// Packed operands of a two-stage fused product: numbers by sign, and exponents; per Highway target.
#if defined(NUMEMU_STAGED_PANEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_STAGED_PANEL_INL
#undef NUMEMU_STAGED_PANEL_INL
#else
#define NUMEMU_STAGED_PANEL_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emu/unit/staged/staged_tile.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Exponents16 = hn::ScalableTag<std::int16_t>;

/// Vectors of doubles beside each other: as many lanes as one vector has 16-bit exponents.
#if HWY_TARGET == HWY_SCALAR
constexpr int kVectors = 1;
#else
constexpr int kVectors = 4;
#endif

/// An element of a row: its number, its exponent twice (so that one 32-bit broadcast fills 16-bit
/// lanes), and where the lanes' numbers of its own sign stand: there the products are positive.
struct RowElement {
  double value;
  std::uint32_t exponent_pair;
  std::int32_t same_sign;
};

/// Panel of lanes, per depth: `width` numbers that are not negative and zeros for the rest, then
/// the same for the others, and in another array the exponents.
struct LanePanel {
  double* numbers;
  std::int16_t* exponents;
  std::int64_t width;
};

/// The exponent of a row's element in every 16-bit lane.
HWY_INLINE hn::Vec<Exponents16> BroadcastExponent(const RowElement& element) {
  const Exponents16 d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, static_cast<std::int16_t>(element.exponent_pair & 0xffff));
#else
  const hn::Repartition<std::uint32_t, Exponents16> d_pair;
  return hn::BitCast(d, hn::Set(d_pair, element.exponent_pair));
#endif
}

/// The exponent an element takes part in the alignment with.
HWY_INLINE int ExponentOf(float x, int emin, int zero_exponent) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
  if (magnitude == 0) return zero_exponent;
  return std::max(static_cast<int>(magnitude >> 23) - 127, emin);
}

/// elements[k * block_rows + i] from floats of the same layout.
HWY_INLINE void SplitRows(const float* packed, std::int64_t count, int emin, int zero_exponent,
                          std::int64_t width, RowElement* elements) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto exponent = static_cast<std::uint16_t>(ExponentOf(packed[i], emin, zero_exponent));
    elements[i] = {packed[i], exponent * 0x10001u,
                   std::signbit(packed[i]) ? static_cast<std::int32_t>(width) : 0};
  }
}

/// The panel from floats [k][width].
HWY_INLINE void SplitPanel(const float* packed, std::int64_t depth, int emin, int zero_exponent,
                           const LanePanel& panel) {
  const Doubles d;
  const hn::Rebind<float, Doubles> d_float;
  const hn::Rebind<std::int32_t, Doubles> d_int;
  const hn::Rebind<std::int16_t, Doubles> d_short;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto smallest = hn::Set(d_int, emin), of_zero = hn::Set(d_int, zero_exponent);
  const auto bias = hn::Set(d_int, 127), magnitude_bits = hn::Set(d_int, 0x7fffffff);
  const std::int64_t width = panel.width;
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t j = 0; j < width; j += lanes) {
      const auto x = hn::LoadU(d_float, packed + k * width + j);
      const auto magnitude = hn::And(hn::BitCast(d_int, x), magnitude_bits);
      const auto leading = hn::Max(hn::Sub(hn::ShiftRight<23>(magnitude), bias), smallest);
      const auto exponent = hn::IfThenElse(hn::Eq(magnitude, hn::Zero(d_int)), of_zero, leading);
      hn::StoreU(hn::DemoteTo(d_short, exponent), d_short, panel.exponents + k * width + j);
      const auto number = hn::PromoteTo(d, x);
      // NaN counts as not negative: it must stay.
      const auto negative = hn::Lt(number, hn::Zero(d));
      double* numbers = panel.numbers + 2 * k * width + j;
      hn::StoreU(hn::IfThenZeroElse(negative, number), d, numbers);
      hn::StoreU(hn::IfThenElseZero(negative, number), d, numbers + width);
    }
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_STAGED_PANEL_INL
