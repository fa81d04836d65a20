// Packed operands of a fused tile: values and stored exponents, k-major; once per Highway target.
#if defined(NUMEMU_FUSED_PANELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_FUSED_PANELS_INL
#undef NUMEMU_FUSED_PANELS_INL
#else
#define NUMEMU_FUSED_PANELS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/fused/prepare_tile.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_FUSED_PANELS_INL
