// One tile of block-scaled FP4: sums of 16 products, their scaling and the cut; per Highway target.
#include "emu/unit/fused/group_form.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/fused/group_form.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"

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

namespace {

/// On the calling thread, whose rounding must be toward zero. The best target of this CPU.
void run_group_tile(const GroupTile& t) { HWY_DYNAMIC_DISPATCH(RunTile)(t); }
/// Whether that target is any faster than the reference needs to be: it has vectors.
bool group_tiles_exist() { return HWY_DYNAMIC_DISPATCH(TilesExist)(); }

constexpr int kGroup = 16, kMostGroups = 4;
/// The largest fraction for which Step() above is exact.
constexpr int kMostFraction = 38;

bool covered(const UnitDescription& u, const Gemm& g) {
  const auto is = [](const Format* f, const char* name) { return f != nullptr && f->name == name; };
  const int fraction_bits = u.alignment.fraction_bits;
  return u.core == CoreKind::fused && u.scaling.point == Scaling::Point::groups &&
         is(u.accumulator.format, "float32") && is(c_format(u), "float32") &&
         is(result_format(u), "float32") && is(g.a.format, "float4_e2m1fn") &&
         is(g.b.format, "float4_e2m1fn") && u.accumulator.rounding.mode == RoundingMode::rtz &&
         u.accumulator.overflow_to_infinity && u.k > 0 && u.k % kGroup == 0 &&
         u.k <= kMostGroups * kGroup && (u.group == 0 || u.group == u.k) && fraction_bits >= 24 &&
         fraction_bits <= kMostFraction && u.scaling.block % kGroup == 0 && group_tiles_exist();
}

/// The exponent and significand in [0, 2) of a scale, as the reference takes them apart.
struct Scale {
  int exponent = 0;
  float significand = 0;
  bool nan = false;
};

std::vector<Scale> scale_table(const Format& format) {
  std::vector<Scale> table(256);
  for (unsigned code = 0; code < 256; ++code) {
    const Value v = decode(format, format.is_signed ? code & 0x7fu : code);
    Scale& s = table[code];
    s.nan = v.kind == Class::nan;
    s.exponent = 1 - format.bias;
    if (v.kind != Class::finite) continue;
    const int leading = v.exponent + static_cast<int>(std::bit_width(v.significand)) - 1;
    s.exponent = format.mantissa_bits == 0 ? leading : std::max(leading, 1 - format.bias);
    s.significand = std::ldexp(static_cast<float>(v.significand), v.exponent - s.exponent);
  }
  return table;
}

struct PreparedSide {
  GroupSide side;
  std::vector<std::uint8_t> nan_rows;
  int largest = -1000;  ///< exponent of a scale
};

PreparedSide prepare(const UnitDescription& u, const Operand& operand, const std::uint8_t* codes,
                     std::int64_t rows, std::int64_t k, std::int64_t groups) {
  PreparedSide p;
  p.side.values = decode_floats(operand, rows, k);
  const std::vector<Scale> table = scale_table(*u.scaling.format);
  const std::int64_t blocks = (k + u.scaling.block - 1) / u.scaling.block;
  p.side.exponents = std::make_unique_for_overwrite<std::int32_t[]>(rows * groups);
  p.side.significands = std::make_unique_for_overwrite<float[]>(rows * groups);
  p.nan_rows.assign(static_cast<std::size_t>(rows), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t block = g * kGroup / u.scaling.block;
      // Scales beyond K are the smallest code, as the reference pads.
      const Scale& s = table[block < blocks ? codes[r * blocks + block] : 0];
      p.side.exponents[r * groups + g] = s.exponent;
      p.side.significands[r * groups + g] = s.significand;
      p.largest = std::max(p.largest, s.exponent);
      if (s.nan) p.nan_rows[static_cast<std::size_t>(r)] = 1;
    }
  }
  return p;
}

/// The sums of all groups stay below 2^126 together, so that with a smaller C no register
/// overflows: a group is below 16 * 36 * 4 = 2^11.2 times its scales' power.
bool bounded(const PreparedSide& a, const PreparedSide& b, std::int64_t groups) {
  constexpr int kRoom = 126, kGroupTop = 12;
  const int count = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(groups)));
  return a.largest + b.largest + kGroupTop + count <= kRoom;
}

/// Outputs that meet a NaN scale, or a C that is not finite or may overflow.
void redo_specials(const UnitDescription& u, const Gemm& g, const PreparedSide& a,
                   const PreparedSide& b) {
  const auto* c = static_cast<const float*>(g.c);
  const auto special = [&](std::int64_t i, std::int64_t j) {
    return a.nan_rows[static_cast<std::size_t>(i)] != 0 ||
           b.nan_rows[static_cast<std::size_t>(j)] != 0 ||
           (c != nullptr && !(std::fabs(c[i * g.n + j]) < 0x1p126f));
  };
  std::unique_ptr<ReferenceDot> dot;
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      if (!special(i, j)) continue;
      if (!dot) dot = std::make_unique<ReferenceDot>(u, g);
      dot->write(i, j);
    }
  }
}

}  // namespace

bool multiply_fused_groups(const UnitDescription& u, const Gemm& g) {
  if (!covered(u, g)) return false;
  const int per_step = u.k / kGroup;
  const std::int64_t groups = (g.k + u.k - 1) / u.k * per_step;
  if (groups == 0) return false;
  const auto side = [&](const Operand& operand, const std::uint8_t* scales, std::int64_t rows) {
    return prepared<PreparedSide>(
        operand, [&](const Operand& read) { return prepare(u, read, scales, rows, g.k, groups); });
  };
  const auto kept_a = side(g.a, g.scale_a, g.m), kept_b = side(g.b, g.scale_b, g.n);
  const PreparedSide &a = *kept_a, &b = *kept_b;
  const auto* c = static_cast<const float*>(g.c);
  if (!bounded(a, b, groups)) return false;
  const TileShape shape{.rows = 256, .lanes = 256, .granule = 16};
  for_each_tile(g.m, g.n, g.k, shape, [&](const Tile& tile) {
    GroupTile t{&a.side,
                &b.side,
                tile.row_begin,
                tile.row_end,
                tile.lane_begin,
                tile.lane_end,
                g.k,
                groups,
                per_step,
                u.alignment.fraction_bits,
                g.n,
                c,
                static_cast<float*>(g.d)};
    const FloatGuard guard(HostRounding::toward_zero);
    run_group_tile(t);
  });
  redo_specials(u, g, a, b);
  return true;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
