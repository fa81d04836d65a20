// The two stages of a fused step: aligned sums of products, then their meeting with C; per target.
#if defined(NUMEMU_STAGED_KERNEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_STAGED_KERNEL_INL
#undef NUMEMU_STAGED_KERNEL_INL
#else
#define NUMEMU_STAGED_KERNEL_INL
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

#include "emu/unit/lanes/narrow-inl.hpp"
#include "emu/unit/staged/staged_panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_STAGED_KERNEL_INL
