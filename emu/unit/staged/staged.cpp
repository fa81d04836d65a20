// One tile of two-stage fused products: packs slices of k and runs both stages; per Highway target.
#include "emu/unit/staged/staged.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/staged/staged.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include "emu/unit/chain/chain_pack-inl.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/lanes/narrow-inl.hpp"
#include "emu/unit/lanes/redo.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/float_guard.hpp"

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

/// Rows of a block: their accumulators, two per vector, fill half of the registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int kBlockRows = 2;
#else
constexpr int kBlockRows = 1;
#endif

/// Sums of the products of every step, and beside each the magnitude whose unit in the last place
/// is the bit at which its addends were cut: [step][row][width].
struct StepSums {
  double *sums, *cuts;
};

/// cuts = 2^(E + 52 - F) for E the largest exponent of products first, first + stride... of a step.
/// A double of that size has the unit 2^(E - F).
template <int kRows>
HWY_INLINE void FindCuts(const StagedRule& rule, int group, const RowElement* rows,
                         const std::int16_t* lanes, int first, int stride, double* cuts) {
  const Exponents16 d;
  const Doubles d_double;
  const hn::Rebind<std::uint16_t, Doubles> d_short;
  const hn::Rebind<std::uint32_t, Doubles> d_word;
  const hn::RebindToUnsigned<Doubles> d_bits;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vector = static_cast<std::int64_t>(hn::Lanes(d_double));
  // Sign, exponent field and four zero bits of the result fit 16 bits: the field is positive and
  // below 2^11 for every E in [-300, 300] and F in [0, 52].
  const auto bias = hn::Set(d, static_cast<std::int16_t>(1023 + 52 - rule.fraction_bits));
  hn::Vec<Exponents16> largest[kRows];
  ForConstants<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    largest[r] = hn::Set(d, static_cast<std::int16_t>(rule.floor));
  });
  for (int k = first; k < group; k += stride) {
    const auto lane = hn::Load(d, lanes + k * width);
    ForConstants<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
      const auto row = BroadcastExponent(rows[k * kRows + r]);
      largest[r] = hn::Max(largest[r], hn::Add(row, lane));
    });
  }
  HWY_ALIGN std::uint16_t high[hn::MaxLanes(Exponents16())];
  ForConstants<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    hn::Store(hn::ShiftLeft<4>(hn::Add(largest[r], bias)), d,
              reinterpret_cast<std::int16_t*>(high));
    ForConstants<kVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      const auto word = hn::PromoteTo(d_word, hn::LoadU(d_short, high + v * vector));
      const auto bits = hn::ShiftLeft<48>(hn::PromoteTo(d_bits, word));
      hn::Store(hn::BitCast(d_double, bits), d_double, cuts + r * width + v * vector);
    });
  });
}

/// Under rounding toward zero: sums of products first, first + stride... of a step. A product that
/// is not negative joins a sum that starts at the cut M, another one a sum that starts at -M: one
/// multiply-add aligns it, cuts its magnitude and adds it. Both sums keep M's unit because they
/// stay between M and 2M: the products are fewer than 2^50 units together (fits_double).
template <int kRows>
HWY_INLINE void AddProducts(int group, const RowElement* rows, const double* lanes,
                            std::int64_t width, int first, int stride, const double* cuts,
                            double* sums) {
  const Doubles d;
  const auto vector = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<Doubles> positive[kRows][kVectors], negative[kRows][kVectors];
  ForConstants<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    ForConstants<kVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      positive[r][v] = hn::Load(d, cuts + r * width + v * vector);
      negative[r][v] = hn::Neg(positive[r][v]);
    });
  });
  for (int k = first; k < group; k += stride) {
    const double* lane = lanes + 2 * k * width;
    ForConstants<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
      const RowElement& row = rows[k * kRows + r];
      const auto a = hn::Set(d, row.value);
      const double* same = lane + row.same_sign;
      const double* other = lane + (width - row.same_sign);
      ForConstants<kVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
        // Without the fused instruction the same: a product of two float32 numbers is a double.
        positive[r][v] = hn::MulAdd(a, hn::Load(d, same + v * vector), positive[r][v]);
        negative[r][v] = hn::MulAdd(a, hn::Load(d, other + v * vector), negative[r][v]);
      });
    });
  }
  ForConstants<kRows>([&](auto r) HWY_ATTR __attribute__((always_inline)) {
    ForConstants<kVectors>([&](auto v) HWY_ATTR __attribute__((always_inline)) {
      const auto cut = hn::Load(d, cuts + r * width + v * vector);
      hn::Store(hn::Add(hn::Sub(positive[r][v], cut), hn::Add(negative[r][v], cut)), d,
                sums + r * width + v * vector);
    });
  });
}

/// Under rounding toward zero: the sums of even and odd k, each cut downwards at the unit of the
/// larger cut, and added. 1.5 M plus a smaller number of either sign is positive, so that toward
/// zero is downwards.
HWY_INLINE void JoinParts(std::int64_t count, const double* even, const double* even_cuts,
                          const double* odd, const double* odd_cuts, double* sums, double* cuts) {
  const Doubles d;
  const auto vector = static_cast<std::int64_t>(hn::Lanes(d));
  const auto half_more = hn::Set(d, 1.5);
  for (std::int64_t i = 0; i < count; i += vector) {
    const auto cut = hn::Max(hn::Load(d, even_cuts + i), hn::Load(d, odd_cuts + i));
    const auto base = hn::Mul(cut, half_more);
    const auto x = hn::Add(hn::Load(d, even + i), base), y = hn::Add(hn::Load(d, odd + i), base);
    hn::Store(hn::Add(hn::Sub(x, base), hn::Sub(y, base)), d, sums + i);
    hn::Store(cut, d, cuts + i);
  }
}

/// The first stage of `steps` steps of a block of rows. The caller has set rounding toward zero; a
/// call of its own so that no arithmetic moves out. kGroup: of the rule, or 0 for any; short loops
/// of a known length leave more to the arithmetic.
template <int kRows, int kGroup>
HWY_NOINLINE void FirstStage(const StagedRule& rule, const RowElement* HWY_RESTRICT rows,
                             const LanePanel& panel, std::int64_t steps, const StepSums& out) {
  constexpr std::int64_t kWidth = kVectors * hn::MaxLanes(Doubles()), kBlock = kRows * kWidth;
  const int group = kGroup == 0 ? rule.group : kGroup;
  for (std::int64_t s = 0; s < steps; ++s) {
    const RowElement* row = rows + s * group * kRows;
    const std::int16_t* exponents = panel.exponents + s * group * kWidth;
    const double* numbers = panel.numbers + 2 * s * group * kWidth;
    double *sums = out.sums + s * kBlock, *cuts = out.cuts + s * kBlock;
    if (rule.parts == 1) {
      FindCuts<kRows>(rule, group, row, exponents, 0, 1, cuts);
      AddProducts<kRows>(group, row, numbers, kWidth, 0, 1, cuts, sums);
      continue;
    }
    HWY_ALIGN double part_sums[2][kRows * kWidth], part_cuts[2][kRows * kWidth];
    for (int p = 0; p < 2; ++p) {
      FindCuts<kRows>(rule, group, row, exponents, p, 2, part_cuts[p]);
      AddProducts<kRows>(group, row, numbers, kWidth, p, 2, part_cuts[p], part_sums[p]);
    }
    JoinParts(kBlock, part_sums[0], part_cuts[0], part_sums[1], part_cuts[1], sums, cuts);
  }
}

/// x cut downwards to a multiple of u, where base = 1.5 * 2^52 u and |x| is at most 2^51 u: base +
/// x has the unit u. Under rounding to nearest.
HWY_INLINE hn::Vec<Doubles> CutDownwards(hn::Vec<Doubles> x, hn::Vec<Doubles> base) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  constexpr int kDownwards = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  return hn::Sub(hn::Vec<Doubles>{_mm512_add_round_pd(x.raw, base.raw, kDownwards)}, base);
#else
  const Doubles d;
  const hn::RebindToSigned<Doubles> d_bits;
  const auto nearest = hn::Add(x, base);
  // All bits set where that went upwards: -1 as an integer, which takes off one unit.
  const auto less = hn::VecFromMask(d, hn::Lt(x, hn::Sub(nearest, base)));
  const auto sum = hn::Add(hn::BitCast(d_bits, nearest), hn::BitCast(d_bits, less));
  return hn::Sub(hn::BitCast(d, sum), base);
#endif
}

/// The second stage, under rounding to nearest: C meets the sums step after step. `registers` holds
/// [row][width] float32 numbers; an infinite one becomes NaN. kDrops: some C may vanish.
template <int kRows, bool kDrops>
HWY_NOINLINE void SecondStage(const StagedRule& rule, const StepSums& in, std::int64_t steps,
                              float* HWY_RESTRICT registers) {
  const Doubles d;
  const hn::Rebind<float, Doubles> d_float;
  const hn::RebindToUnsigned<Doubles> d_bits;
  constexpr int kChains = kRows * kVectors;
  const auto vector = static_cast<std::int64_t>(hn::Lanes(d));
  const auto power_of_two = hn::BitCast(d, hn::Set(d_bits, std::uint64_t{0x7ff} << 52));
  const auto of_cut = hn::Set(d, std::ldexp(1.0, rule.fraction_bits - 52));
  const auto smallest = hn::Set(d, std::ldexp(1.0, kStagedSmallest));
  // In units of the cuts the sum is at most 2^51 and C below 2^50 (fits_double).
  const auto sum_base = hn::Set(d, std::ldexp(1.5, 52 - rule.sum_bits));
  const auto c_base = hn::Set(d, std::ldexp(1.5, 52 - rule.c_bits));
  const auto reach = hn::Set(d, std::ldexp(1.0, rule.c_dropped));
  hn::Vec<Doubles> c[kChains];
  ForConstants<kChains>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    c[i] = hn::PromoteTo(d, hn::Load(d_float, registers + i * vector));
  });
  for (std::int64_t s = 0; s < steps; ++s) {
    const double* sums = in.sums + s * kChains * vector;
    const double* cuts = in.cuts + s * kChains * vector;
    ForConstants<kChains>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
      const auto c_power = hn::Max(hn::And(c[i], power_of_two), smallest);
      const auto sum_power = hn::Mul(hn::Load(d, cuts + i * vector), of_cut);
      const auto power = hn::Max(sum_power, c_power);
      const auto sum_part = CutDownwards(hn::Load(d, sums + i * vector), hn::Mul(power, sum_base));
      auto c_part = CutDownwards(c[i], hn::Mul(power, c_base));
      if constexpr (kDrops)
        c_part = hn::IfThenZeroElse(hn::Lt(hn::Mul(c_power, reach), power), c_part);
      // Exact: multiples of 2^(E - sum_bits), below 2^52 of them together (fits_double). Neither
      // part is ever -0, so neither is a result that is exactly zero.
      c[i] = hn::PromoteTo(d, ToFloat32(d, hn::Add(c_part, sum_part)));
    });
  }
  ForConstants<kChains>([&](auto i) HWY_ATTR __attribute__((always_inline)) {
    hn::Store(ToFloat32(d, c[i]), d_float, registers + i * vector);
  });
}

/// Both sides of one slice of k, packed, and the room that takes.
class StagedSlices {
 public:
  explicit StagedSlices(const StagedTile& tile)
      : t_(tile),
        width_(static_cast<std::int64_t>(hn::Lanes(Exponents16()))),
        blocks_((tile.row_end - tile.row_begin + kBlockRows - 1) / kBlockRows),
        panels_((tile.lane_end - tile.lane_begin + width_ - 1) / width_),
        rows_(Room<RowElement>(blocks_ * kBlockRows * kStagedSlice)),
        floats_(Room<float>(std::max<std::int64_t>(kBlockRows, width_) * kStagedSlice)),
        numbers_(Room<double>(2 * width_ * kStagedSlice)),
        exponents_(Room<std::int16_t>(width_ * kStagedSlice)),
        sums_(Room<double>(kBlockRows * width_ * kStagedSlice)),
        cuts_(Room<double>(kBlockRows * width_ * kStagedSlice)),
        runs_(Room<Run>(kStagedSlice)),
        registers_(Room<float>(panels_ * blocks_ * kBlockRows * width_)) {}

  void Compute() {
    ForEachBlock([&](std::int64_t p, std::int64_t b) { Exchange(p, b, false); });
    for (std::int64_t k = 0; k < t_.padded_k; k += kStagedSlice) {
      PackRows(k);
      for (std::int64_t p = 0; p < panels_; ++p) {
        PackLanes(k, p);
        for (std::int64_t b = 0; b < blocks_; ++b) Multiply(k, p, b);
      }
    }
    ForEachBlock([&](std::int64_t p, std::int64_t b) { Exchange(p, b, true); });
  }

 private:
  template <class T>
  static hwy::AlignedFreeUniquePtr<T[]> Room(std::int64_t count) {
    return hwy::AllocateAligned<T>(static_cast<std::size_t>(count));
  }
  template <class Visit>
  void ForEachBlock(const Visit& visit) {
    for (std::int64_t p = 0; p < panels_; ++p) {
      for (std::int64_t b = 0; b < blocks_; ++b) visit(p, b);
    }
  }
  std::int64_t Depth(std::int64_t k) const { return std::min(kStagedSlice, t_.padded_k - k); }
  float* Registers(std::int64_t p, std::int64_t b) {
    return registers_.get() + (p * blocks_ + b) * kBlockRows * width_;
  }

  /// Registers from C, or D from registers.
  void Exchange(std::int64_t p, std::int64_t b, bool out) {
    float* registers = Registers(p, b);
    const std::int64_t row = t_.row_begin + b * kBlockRows, lane = t_.lane_begin + p * width_;
    const std::int64_t rows = std::min<std::int64_t>(kBlockRows, t_.row_end - row);
    const std::int64_t lanes = std::min(width_, t_.lane_end - lane);
    if (!out) std::fill_n(registers, kBlockRows * width_, 0.0f);
    if (!out && t_.c == nullptr) return;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < lanes; ++j) {
        const std::int64_t at = (row + i) * t_.row_stride + (lane + j) * t_.lane_stride;
        if (out) {
          t_.d[at] = registers[i * width_ + j];
        } else {
          registers[i * width_ + j] = t_.c[at];
        }
      }
    }
  }

  /// Floats [depth][width] of one block or panel; products beyond K are zeros.
  void PackFloats(const ChainSide<float>& side, std::int64_t first, std::int64_t count,
                  std::int64_t width, std::int64_t k) {
    const std::int64_t depth = Depth(k), held = std::clamp<std::int64_t>(t_.k - k, 0, depth);
    const std::int64_t runs = FindRuns(side.depth + k, held, runs_.get());
    Pack<float>({side, first, count, width, side.depth + k, held, runs_.get(), runs},
                floats_.get());
    std::fill(floats_.get() + held * width, floats_.get() + depth * width, 0.0f);
  }
  void PackRows(std::int64_t k) {
    for (std::int64_t b = 0; b < blocks_; ++b) {
      const std::int64_t row = t_.row_begin + b * kBlockRows;
      PackFloats(t_.rows, row, std::min<std::int64_t>(kBlockRows, t_.row_end - row), kBlockRows, k);
      SplitRows(floats_.get(), Depth(k) * kBlockRows, t_.row_emin, t_.rule.zero_exponent, width_,
                rows_.get() + b * kBlockRows * kStagedSlice);
    }
  }
  void PackLanes(std::int64_t k, std::int64_t p) {
    const std::int64_t lane = t_.lane_begin + p * width_;
    PackFloats(t_.lanes, lane, std::min(width_, t_.lane_end - lane), width_, k);
    SplitPanel(floats_.get(), Depth(k), t_.lane_emin, t_.rule.zero_exponent, Panel());
  }
  LanePanel Panel() const { return {numbers_.get(), exponents_.get(), width_}; }

  void Multiply(std::int64_t k, std::int64_t p, std::int64_t b) {
    const std::int64_t steps = Depth(k) / t_.rule.group;
    const StepSums sums{sums_.get(), cuts_.get()};
    {
      const FloatGuard toward_zero(HostRounding::toward_zero);
      const auto run = t_.rule.group == 4 ? FirstStage<kBlockRows, 4> : FirstStage<kBlockRows, 0>;
      run(t_.rule, rows_.get() + b * kBlockRows * kStagedSlice, Panel(), steps, sums);
    }
    t_.rule.c_dropped < kNeverDropped
        ? SecondStage<kBlockRows, true>(t_.rule, sums, steps, Registers(p, b))
        : SecondStage<kBlockRows, false>(t_.rule, sums, steps, Registers(p, b));
  }

  const StagedTile& t_;
  std::int64_t width_, blocks_, panels_;
  hwy::AlignedFreeUniquePtr<RowElement[]> rows_;
  hwy::AlignedFreeUniquePtr<float[]> floats_;
  hwy::AlignedFreeUniquePtr<double[]> numbers_;
  hwy::AlignedFreeUniquePtr<std::int16_t[]> exponents_;
  hwy::AlignedFreeUniquePtr<double[]> sums_, cuts_;
  hwy::AlignedFreeUniquePtr<Run[]> runs_;
  hwy::AlignedFreeUniquePtr<float[]> registers_;
};

void RunStagedTile(const StagedTile& tile) { StagedSlices(tile).Compute(); }

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunStagedTile);

/// In units of 2^(E - F) a product is below 2^(F + 2), a sum below 2^(F + 2 + log2 group): with
/// that at most 2^50, the accumulators 2^52 + sum of FirstStage stay in [2^52, 2^53) and 1.5 * 2^52
/// + sum of JoinParts does too. In units of 2^(E2 - sum_bits) the sum is below 2^(sum_bits + 2 +
/// log2 group) and C below 2^(sum_bits + 1): both together must stay below 2^53.
bool StagedRule::fits_double() const {
  const int growth = 2 + log2_ceil(group);
  return fraction_bits >= 0 && fraction_bits + growth <= 50 && c_bits >= 0 && c_bits <= sum_bits &&
         sum_bits + growth + 1 <= 52 && floor >= -1000 && floor <= 200;
}

namespace {

/// One tile on the calling thread, which must hold a FloatGuard.
void run_staged_tile(const StagedTile& tile) { HWY_DYNAMIC_DISPATCH(RunStagedTile)(tile); }

/// The largest magnitude that counts as finite with products_overflow is below 2^128.
constexpr int kProductTop = 128;

bool covered(const Format& format) {
  return format.kind == Kind::floating && format.is_signed && fits_float32(format) &&
         format.mantissa_bits > 0 && format.bias >= 1 && format.bias <= 127;
}

std::optional<StagedRule> staged_rule(const UnitDescription& u, std::int64_t k) {
  const Alignment& a = u.alignment;
  if (u.core != CoreKind::fused || u.c_entry != CEntry::after_alignment || !float32_register(u) ||
      a.zero_exponent != kStagedSmallest)
    return std::nullopt;
  const std::int64_t group = u.group != 0 ? u.group : u.k;
  const std::int64_t instruction = u.k != 0 ? u.k : group;
  // Slices must be whole steps, and steps must not straddle instructions.
  if (k == 0 || group == 0 || kStagedSlice % group != 0 || instruction % group != 0 ||
      (a.parts != 1 && (a.parts != 2 || group % 2 != 0)))
    return std::nullopt;
  StagedRule rule;
  rule.group = static_cast<int>(group);
  rule.parts = a.parts;
  rule.fraction_bits = a.fraction_bits;
  rule.zero_exponent = *a.zero_exponent;
  rule.floor = a.floor.value_or(-1000);
  rule.sum_bits = u.second.fraction_bits;
  rule.c_bits = u.second.c_fraction_bits;
  rule.c_dropped = u.second.c_dropped.value_or(kNeverDropped);
  if (!rule.fits_double() || rule.c_dropped < 0 || rule.c_dropped > kNeverDropped)
    return std::nullopt;
  return rule;
}

}  // namespace

bool multiply_staged(const UnitDescription& u, const Gemm& g) {
  if (!covered(*g.a.format) || !covered(*g.b.format)) return false;
  const std::optional<StagedRule> rule = staged_rule(u, g.k);
  if (!rule) return false;
  const Source<float> a = decode_lanes(g.a, g.m, g.k), b = decode_lanes(g.b, g.n, g.k);
  // NaN and infinity among the operands leave NaN behind (infinity times a zero of the panel), or
  // the infinity that is due; registers that overflow before the last step leave NaN too.
  SafeRange range;
  if (u.products_overflow) range.product_top = kProductTop;
  const Redo redo(g, a, b, range);

  const bool swap = g.m > g.n;
  StagedTile whole;
  whole.rule = *rule;
  const ChainSide<float> side_a{a.values, a.row, a.depth}, side_b{b.values, b.row, b.depth};
  whole.rows = swap ? side_b : side_a;
  whole.lanes = swap ? side_a : side_b;
  whole.row_emin = smallest_normal_exponent(*(swap ? g.b : g.a).format);
  whole.lane_emin = smallest_normal_exponent(*(swap ? g.a : g.b).format);
  whole.k = g.k;
  const std::int64_t instruction = u.k != 0 ? u.k : rule->group;
  whole.padded_k = (g.k + instruction - 1) / instruction * instruction;
  whole.row_stride = swap ? 1 : g.n;
  whole.lane_stride = swap ? g.n : 1;
  whole.c = static_cast<const float*>(g.c);
  whole.d = static_cast<float*>(g.d);
  constexpr TileShape kShape{.rows = 256, .lanes = 512, .granule = 32};
  for_each_tile(std::min(g.m, g.n), std::max(g.m, g.n), g.k, kShape, [&](const Tile& tile) {
    StagedTile part = whole;
    part.row_begin = tile.row_begin;
    part.row_end = tile.row_end;
    part.lane_begin = tile.lane_begin;
    part.lane_end = tile.lane_end;
    run_staged_tile(part);
  });
  redo.run(u, g);
  return true;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
