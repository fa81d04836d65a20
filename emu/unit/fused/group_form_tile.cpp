// One tile of block-scaled FP4: sums of 16 products, their scaling and the cut; per Highway target.
#include "emu/unit/fused/group_form_tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/group_form_tile.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>

#include "emu/unit/chain/chain_pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using Doubles = hn::Repartition<double, Floats>;
using HalfInts = hn::Half<Ints>;
using HalfFloats = hn::Half<Floats>;
using FloatVector = hn::Vec<Floats>;
using IntVector = hn::Vec<Ints>;
using DoubleVector = hn::Vec<Doubles>;

constexpr int kGroup = 16, kMostGroups = 4;
/// Rows whose group sums share the loads of B.
constexpr int kRows = 4;

/// Two vectors of float64 with the lanes of one of float32.
struct Pair {
  DoubleVector low, high;
};

HWY_INLINE Pair Widen(FloatVector v) {
  const Doubles d;
  const HalfFloats half;
  return {hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v))};
}

/// 2^exponent.
HWY_INLINE DoubleVector Power(hn::Vec<HalfInts> exponent) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> d_long;
  const auto biased = hn::Add(hn::PromoteTo(d_long, exponent), hn::Set(d_long, 1023));
  return hn::BitCast(d, hn::ShiftLeft<52>(biased));
}

HWY_INLINE Pair Power(IntVector exponent) {
  const HalfInts half;
  return {Power(hn::LowerHalf(half, exponent)), Power(hn::UpperHalf(half, exponent))};
}

/// v cut toward zero to a multiple of ulp(magnitude): beside `magnitude` with v's sign that is the
/// last bit, and the sum loses what lies below because rounding is toward zero.
HWY_INLINE DoubleVector Cut(DoubleVector v, DoubleVector magnitude) {
  const auto with_sign = hn::CopySign(magnitude, v);
  return hn::Sub(hn::Add(v, with_sign), with_sign);
}

/// The groups of a step, for one row and a vector of lanes.
struct Groups {
  FloatVector sums[kMostGroups];
  IntVector exponents[kMostGroups];
  FloatVector scales[kMostGroups];  ///< products of two significands: at most 8 bits
};

/// The register after a step. Addends are below 2^(E + 12): sums of 16 products of magnitude at
/// most 36, times significands below 4. M = 2^(E + 52 - F) is above that for F <= 40, and five of
/// them stay below 2^53 units of 2^(E - F) for F <= 38.
HWY_INLINE FloatVector Step(const Groups& groups, int count, int fraction_bits, FloatVector c) {
  const Floats d;
  const Ints d_int;
  const HalfFloats half;
  const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(d_int, c)), hn::Set(d_int, 0xff));
  IntVector largest = hn::Sub(hn::Max(field, hn::Set(d_int, 1)), hn::Set(d_int, 127));
  for (int g = 0; g < count; ++g) largest = hn::Max(largest, groups.exponents[g]);
  const Pair magnitude = Power(hn::Add(largest, hn::Set(d_int, 52 - fraction_bits)));
  const Pair wide_c = Widen(c);
  Pair sum{Cut(wide_c.low, magnitude.low), Cut(wide_c.high, magnitude.high)};
  for (int g = 0; g < count; ++g) {
    // At most 12 and 8 bits: exact.
    const Pair value = Widen(hn::Mul(groups.sums[g], groups.scales[g]));
    const Pair power = Power(groups.exponents[g]);
    sum.low = hn::Add(sum.low, Cut(hn::Mul(value.low, power.low), magnitude.low));
    sum.high = hn::Add(sum.high, Cut(hn::Mul(value.high, power.high), magnitude.high));
  }
  return hn::Combine(d, hn::DemoteTo(half, sum.high), hn::DemoteTo(half, sum.low));
}

/// kRows rows and one vector of lanes, all steps. `rows` holds kRows elements per depth.
HWY_NOINLINE void RunBlock(const GroupTile& t, const float* rows, const float* lanes,
                           const std::int32_t* const* row_exponents, const float* const* row_scales,
                           const std::int32_t* lane_exponents, const float* lane_scales,
                           float* registers) {
  const Floats d;
  const Ints d_int;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  FloatVector c[kRows];
  for (int r = 0; r < kRows; ++r) c[r] = hn::Load(d, registers + r * width);
  for (std::int64_t first = 0; first < t.groups; first += t.groups_per_step) {
    Groups groups[kRows];
    for (int g = 0; g < t.groups_per_step; ++g) {
      FloatVector s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      // Products and their sums are small multiples of a quarter: exact, fused or not.
      for (int k = 0; k < kGroup; ++k) {
        const auto b = hn::Load(d, lanes);
        s0 = hn::MulAdd(hn::Set(d, rows[0]), b, s0);
        s1 = hn::MulAdd(hn::Set(d, rows[1]), b, s1);
        s2 = hn::MulAdd(hn::Set(d, rows[2]), b, s2);
        s3 = hn::MulAdd(hn::Set(d, rows[3]), b, s3);
        rows += kRows;
        lanes += width;
      }
      groups[0].sums[g] = s0;
      groups[1].sums[g] = s1;
      groups[2].sums[g] = s2;
      groups[3].sums[g] = s3;
      const std::int64_t group = first + g;
      const auto exponents = hn::Load(d_int, lane_exponents + group * width);
      const auto scales = hn::Load(d, lane_scales + group * width);
      for (int r = 0; r < kRows; ++r) {
        groups[r].exponents[g] = hn::Add(exponents, hn::Set(d_int, row_exponents[r][group]));
        groups[r].scales[g] = hn::Mul(scales, hn::Set(d, row_scales[r][group]));
      }
    }
    for (int r = 0; r < kRows; ++r)
      c[r] = Step(groups[r], t.groups_per_step, t.fraction_bits, c[r]);
  }
  for (int r = 0; r < kRows; ++r) hn::Store(c[r], d, registers + r * width);
}

/// Elements (first + i, k) of a side, k-major, +0 beyond `count` and beyond K.
void PackSide(const GroupSide& side, std::int64_t first, std::int64_t count, std::int64_t width,
              const GroupTile& t, const Run* runs, std::int64_t run_count, float* packed) {
  const ChainSide<float> source{side.values.values, side.values.row, side.values.depth};
  Pack<float>({source, first, count, width, source.depth, t.k, runs, run_count}, packed);
  std::fill(packed + t.k * width, packed + t.groups * kGroup * width, 0.0f);
}

void RunTile(const GroupTile& t) {
  const Floats d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t depth = t.groups * kGroup;
  const std::int64_t rows = t.row_end - t.row_begin;
  const std::int64_t blocks = (rows + kRows - 1) / kRows;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n + 1); };
  const auto packed = hwy::AllocateAligned<float>(size(blocks * kRows * depth));
  const auto panel = hwy::AllocateAligned<float>(size(depth * width));
  const auto exponents = hwy::AllocateAligned<std::int32_t>(size(t.groups * width));
  const auto scales = hwy::AllocateAligned<float>(size(t.groups * width));
  const auto runs = hwy::AllocateAligned<Run>(size(t.k));
  HWY_ALIGN float registers[kRows * hn::MaxLanes(d)];

  const std::int64_t row_runs = FindRuns(t.a->values.depth, t.k, runs.get());
  for (std::int64_t b = 0; b < blocks; ++b)
    PackSide(*t.a, t.row_begin + b * kRows, std::min<std::int64_t>(kRows, rows - b * kRows), kRows,
             t, runs.get(), row_runs, packed.get() + b * kRows * depth);
  const std::int64_t lane_runs = FindRuns(t.b->values.depth, t.k, runs.get());
  for (std::int64_t lane = t.lane_begin; lane < t.lane_end; lane += width) {
    const std::int64_t lanes = std::min(width, t.lane_end - lane);
    PackSide(*t.b, lane, lanes, width, t, runs.get(), lane_runs, panel.get());
    for (std::int64_t g = 0; g < t.groups; ++g) {
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t from = (lane + std::min(j, lanes - 1)) * t.groups + g;
        exponents[static_cast<std::size_t>(g * width + j)] = t.b->exponents[from];
        scales[static_cast<std::size_t>(g * width + j)] = t.b->significands[from];
      }
    }
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t row = t.row_begin + b * kRows;
      const std::int64_t count = std::min<std::int64_t>(kRows, t.row_end - row);
      const std::int32_t* row_exponents[kRows];
      const float* row_scales[kRows];
      std::fill_n(registers, kRows * width, 0.0f);
      for (std::int64_t r = 0; r < kRows; ++r) {
        const std::int64_t from = (row + std::min(r, count - 1)) * t.groups;
        row_exponents[r] = t.a->exponents.get() + from;
        row_scales[r] = t.a->significands.get() + from;
        if (r < count && t.c != nullptr)
          std::copy_n(t.c + (row + r) * t.stride + lane, lanes, registers + r * width);
      }
      RunBlock(t, packed.get() + b * kRows * depth, panel.get(), row_exponents, row_scales,
               exponents.get(), scales.get(), registers);
      for (std::int64_t r = 0; r < count; ++r)
        std::copy_n(registers + r * width, lanes, t.d + (row + r) * t.stride + lane);
    }
  }
}

bool TilesExist() { return true; }

#else
void RunTile(const GroupTile&) {}
bool TilesExist() { return false; }
#endif

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunTile);
HWY_EXPORT(TilesExist);

void run_group_tile(const GroupTile& t) { HWY_DYNAMIC_DISPATCH(RunTile)(t); }
bool group_tiles_exist() { return HWY_DYNAMIC_DISPATCH(TilesExist)(); }

}  // namespace numemu::unit
#endif  // HWY_ONCE
